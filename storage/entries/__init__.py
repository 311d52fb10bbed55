"""Knowledge entries: publish, look up and undo."""
