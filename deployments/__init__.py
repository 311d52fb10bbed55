"""Deployments: scheduling and serving of flows."""
