"""Local folders, and the access to their documents."""
