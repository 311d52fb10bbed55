"""The settings file: its sections, its checks, and messages in its own terms."""
