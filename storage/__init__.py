"""Where a corpus is kept: Delta tables of Parquet shards, read through DuckDB."""
