"""Rerankers: one provider per file."""
