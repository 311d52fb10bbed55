"""Calibrations that come with the package, one file per embedder, with the data they were measured on."""
