"""Compositions of tasks: what happens in a run, in which order."""
