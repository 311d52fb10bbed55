"""Chats over a corpus: retrieval, context, agents, tools and the upstream model; knows no web framework."""
