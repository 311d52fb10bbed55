"""Metrics of runs, logs as JSON, and traces, for the tools of operators."""
