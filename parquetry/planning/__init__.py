"""Decisions of a refresh: what changed, what it may cost, which rows come next. Pure but for hashing."""
