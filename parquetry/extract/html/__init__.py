"""HTML pages: the main content, with tables and blocks kept."""
