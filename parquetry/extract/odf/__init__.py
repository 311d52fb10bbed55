"""OpenDocument texts, sheets and slides."""
