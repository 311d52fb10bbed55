"""Entries and decisions as rows: the state of entries, and the undoing of decisions. Pure."""
