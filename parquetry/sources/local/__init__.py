"""Folders of this machine, and who may see what is in them."""
