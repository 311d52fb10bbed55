"""Upkeep of a corpus: doctor, repair, erasure, secrets from before, overview."""
