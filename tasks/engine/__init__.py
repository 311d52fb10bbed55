"""Execution of batches: threads or Prefect tasks, killable processes, retries and time limits."""
