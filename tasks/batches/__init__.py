"""Work that a service answers later: the lane of its batch API, for documents and for sessions."""
