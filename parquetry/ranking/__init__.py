"""Ranked lists: fusion, diversity and evaluation. Pure."""
