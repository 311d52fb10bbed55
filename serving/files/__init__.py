"""Files that were uploaded to be attached to vector stores, and the stores: rows in SQLite, bytes on disk."""
