"""How batches run: threads or Prefect tasks, killable processes, retries and time limits."""
