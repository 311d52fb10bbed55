"""Benchmarks of extraction fidelity, refresh cost, search and orchestration overhead. Not part of the package."""
