"""A run step by step, whichever engine runs it. No Prefect here."""
