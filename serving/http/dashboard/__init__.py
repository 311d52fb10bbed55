"""Routes of the dashboard, which answer in HTML."""
