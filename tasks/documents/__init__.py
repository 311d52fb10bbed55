"""Batches of documents: list, plan, fetch, read, embed and publish."""
