"""Dify's external knowledge API."""
