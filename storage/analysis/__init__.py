"""Analyses: facts on all documents of a version together; derived, kept beside the search index."""
