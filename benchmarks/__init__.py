"""Measurements: what extraction keeps, what a refresh costs, what orchestration adds. Not part of the package."""
