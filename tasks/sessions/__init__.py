"""Batches of chat sessions: read, distill, merge and publish."""
