"""Buckets of S3, or of a store that speaks its language."""
