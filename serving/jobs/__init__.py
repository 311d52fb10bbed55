"""Durable queue of writes and runs, and the process that carries them out; HTTP workers use the queue only."""
