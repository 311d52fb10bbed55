"""Parquetry in other frameworks: one module each, with an extra of the same name."""
