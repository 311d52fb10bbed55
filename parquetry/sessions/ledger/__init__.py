"""Entries and decisions as rows: what is live, and how a decision is taken back. Pure."""
