"""Chunks and vectors in and out: dumps of other stores, read and written as a stream."""
