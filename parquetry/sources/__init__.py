"""Sources: what a place holds and how to read it. One file per kind of place."""
