"""Maintenance of a corpus: doctor, repair, erasure, old secrets, overview."""
