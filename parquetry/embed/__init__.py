"""Embedding: texts in, one float32 vector each out. One file per provider."""
