"""Prefect integration of a run: parameters, logs, artifacts, concurrency limits, a bundled server."""
