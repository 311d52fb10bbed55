"""Tokens, callers, rights, rate limits and audit events of the service; no HTTP framework is imported here."""
