"""Compositions of tasks: the steps of each run, in order."""
