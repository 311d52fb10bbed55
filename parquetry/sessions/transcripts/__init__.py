"""Chat sessions out of the files that programs keep or export them in. One file per format."""
