"""The HTTP application: routes of each dialect, errors, limits and metrics. What it answers is decided elsewhere."""
