"""Searches and SQL over a corpus, restricted to the data that the caller may see."""
