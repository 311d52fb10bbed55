"""Decisions of a refresh: changes, estimates and new rows. Pure except for hashing."""
