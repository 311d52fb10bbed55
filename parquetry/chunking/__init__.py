"""Chunking: texts cut to size with exact spans. No embedding and no storage."""
