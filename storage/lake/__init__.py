"""The Delta tables of a corpus: schemas, commits, shards, snapshots and damage."""
