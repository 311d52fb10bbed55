"""What was found by looking at all documents of a version together; derived, kept beside the search index."""
