"""Searches and SQL over a corpus, within what the caller may see."""
