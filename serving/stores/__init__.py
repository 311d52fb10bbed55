"""Files and vector stores: attached files become documents, and a search in a store is a search with filters."""
