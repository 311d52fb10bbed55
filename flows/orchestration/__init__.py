"""What Prefect needs around a run: parameters, logs, artifacts, exclusion, a server of one's own."""
