"""Knowledge entries: published, looked up, taken back."""
