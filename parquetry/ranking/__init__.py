"""Ranked lists: fused, diversified and evaluated. Pure."""
