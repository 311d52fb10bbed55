"""Embedders: one float32 vector per text. One file per provider."""
