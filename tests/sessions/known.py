"""Fixtures for comparison tests: drafts and known entries of one scope."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from parquetry import ids
from parquetry.model import Access
from parquetry.sessions.model import Candidate, Draft, Entry, EntryKind, Owner, SessionRef

SAID = datetime(2031, 3, 1, 9, 30, tzinfo=UTC)
EARLIER = datetime(2030, 11, 20, 16, 0, tzinfo=UTC)
ALL_SEE = Access("public")


def draft(text: str, *, access: Access = ALL_SEE, kind: EntryKind = "fact", **fields: object) -> Draft:
    owner = Owner("default", access.org_id, access.user_id, "public")
    whole = {"confidence": 0.8, "evidence": ("m-1",), "said_at": SAID, "lowered": None, **fields}
    return Draft(SessionRef("s-1", "chats/a.json", owner), kind, text, access, **whole)


def entry(text: str, *, access: Access = ALL_SEE, namespace: str = "default", kind: EntryKind = "fact") -> Entry:
    scope = (access.visibility, access.org_id, access.user_id)
    return Entry(ids.entry_id(namespace, scope, text), namespace, kind, text, access, 0.9, EARLIER)


def shown(texts: Sequence[str]) -> list[Candidate]:
    """Return candidates in this order."""
    return [Candidate(place, entry(text), 1 - place / 100) for place, text in enumerate(texts, start=1)]
