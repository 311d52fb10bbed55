"""Statements out of chat sessions: asked of the model, checked against the evidence."""
