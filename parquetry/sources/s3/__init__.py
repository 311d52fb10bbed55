"""Buckets of S3 and S3-compatible stores."""
