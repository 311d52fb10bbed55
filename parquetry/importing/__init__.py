"""Chunks with their vectors from dumps of other stores: their fields, checks, and the documents that they make up."""
