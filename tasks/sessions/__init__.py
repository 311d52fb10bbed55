"""Batches of chat sessions: read, learned from, merged, published."""
