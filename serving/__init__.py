"""The read side: command line and services. Never imports Prefect."""
