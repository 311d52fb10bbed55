"""Files of a corpus, local or on an object store, and syncing to disk."""
