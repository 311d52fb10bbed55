"""Readers of chat sessions in the files that programs keep or export. One file per format."""
