"""Extraction: bytes of any supported format in, normalised text with positions out. One file per format family."""
