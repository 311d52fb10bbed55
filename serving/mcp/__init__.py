"""Model Context Protocol: one server for standard streams and HTTP, its tools, resources and prompts.

Knows no web framework and no terminal; the official SDK speaks the protocol.
"""
