"""Pages of the dashboard: what they show, and their HTML; knows no web framework."""
