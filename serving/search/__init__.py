"""Answers for every reading interface: search, passages, citations, excerpts. Knows no terminal."""
