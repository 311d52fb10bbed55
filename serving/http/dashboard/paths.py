"""Paths of the dashboard."""

from __future__ import annotations

from parquetry.serving.web.assets import PREFIX, assets

SEARCH = "/search"
ASK = "/ask"
DOCUMENTS = "/documents"
ADD = "/add"
ENTRIES = "/entries"
RUNS = "/runs"
QUALITY = "/quality"
MAP = "/map"
ADMIN = "/admin"
SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
PATHS = (
    "/",
    SEARCH,
    ASK,
    DOCUMENTS,
    ADD,
    ENTRIES,
    RUNS,
    QUALITY,
    MAP,
    ADMIN,
    SIGN_IN,
    SIGN_OUT,
    PREFIX,
)
"""paths of the dashboard, with everything below them; `/` alone is its first page"""
PUBLIC = frozenset({SIGN_IN, SIGN_OUT, *(each.path for each in assets().values())})
"""routes that need no token; they say nothing about documents"""
