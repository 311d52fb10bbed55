"""Runs as a sequence of steps, independent of the engine. No Prefect here."""
