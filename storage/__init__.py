"""The storage of a corpus: Delta tables of Parquet shards, read through DuckDB."""
