"""The settings file: sections, validation, and messages in terms of the file."""
