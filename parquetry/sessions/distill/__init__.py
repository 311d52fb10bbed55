"""Distilling statements from chat sessions: extraction by the language model, checks against the evidence."""
