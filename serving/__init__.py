"""The read side: command line and Python API. Never imports Prefect."""
