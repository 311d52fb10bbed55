"""Uploads: documents handed in through the service or `parquetry add`, kept as bytes, and their source."""
