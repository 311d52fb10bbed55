"""Sources: listing and reading the documents of a place. One file per kind of place."""
