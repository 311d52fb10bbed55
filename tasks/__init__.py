"""Batch handlers, which time, contain and count the work on a batch, and the engines that run them."""
