"""The search index: one DuckDB file for each version, built, checked and replaced."""
