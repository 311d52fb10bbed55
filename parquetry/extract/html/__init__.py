"""HTML pages: content found, tables and blocks kept."""
