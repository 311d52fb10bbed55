"""Batches of documents: listed, planned, fetched, read, embedded, published."""
