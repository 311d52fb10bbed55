"""Knowledge entries as pages show them: a list, and one with its history, what contradicts it, and its decisions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from parquetry.model import Access
from parquetry.reasons import REASONS
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import AccessRefused, Forbidden, NotVisible
from parquetry.serving.access.visibility import demand_change
from parquetry.serving.search.entry_reading import Row, stories, texts_of
from parquetry.storage.database import Connection, rows

_EFFECTS: Mapping[str, str] = {
    "new": "Learned",
    "existing": "Said again",
    "merged": "Merged",
    "contradicts": "Contradicts",
    "refused": "Refused",
    "quarantined": "Quarantined",
    "undone": "Undone",
}
_JUDGES: Mapping[str, str] = {
    "identity": "the same words",
    "similarity": "similarity alone",
    "model": "the language model",
    "guard": "a guard, over the language model",
    "operator": "a person",
}


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """An entry."""

    id: str
    text: str
    kind: str
    namespace: str
    audience: str
    """its audience, in words"""
    sessions: int
    confidence: float
    last_said: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None
    """since when a later entry says the opposite; None if none does"""
    opposed: bool
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedEntry:
    """An entry that a decision names."""

    id: str
    text: str
    score: float | None = None
    """cosine similarity; None if it was not compared"""


@dataclass(frozen=True, slots=True)
class ShownDecision:
    """A decision about entries."""

    id: str
    effect: str
    kind: str
    judge: str
    at: datetime
    text: str
    """statement that it is about; empty if there is none, or the caller may not see it"""
    reasoning: str
    reason: str
    explanation: str
    """of the reason"""
    replaces: tuple[NamedEntry, ...]
    brings: tuple[NamedEntry, ...]
    links: tuple[NamedEntry, ...]
    compared: tuple[NamedEntry, ...]
    session_uri: str
    """empty for a decision of no session, or of another user's"""
    evidence: tuple[str, ...]
    """ids of messages"""
    said_at: datetime | None
    model: str
    tokens: int
    cost_usd: float
    undone_by: str
    undoes: str
    may_undo: bool


@dataclass(frozen=True, slots=True)
class EntryPage:
    """One entry."""

    entry: ListedEntry
    live: bool
    against: tuple[ListedEntry, ...]
    """entries that say the opposite, and hold"""
    decisions: tuple[ShownDecision, ...]
    """oldest first"""
    others: int
    """sessions of other users that say it"""


def listed_entry(row: Row) -> ListedEntry:
    """Return a row of the view `entries` as an item of a list."""
    return ListedEntry(
        id=row["entry_id"],
        text=row["text"],
        kind=row["kind"] or "",
        namespace=row["namespace"],
        audience=audience_of(row),
        sessions=row["sessions"] or 0,
        confidence=row["confidence"] or 0.0,
        last_said=row["last_said"],
        valid_from=row["valid_from"],
        valid_until=row["valid_until"],
        opposed=any(row["contradicts"] or ()),
        tags=tuple(row["tags"] or ()),
    )


def audience_of(row: Row) -> str:
    """Return who sees an entry, in words."""
    if row["visibility"] == "organization":
        return f"Everyone in {row['org_id']}"
    return f"{row['user_id']} alone" if row["visibility"] == "individual" else "Everyone"


def entry_page(connection: Connection, caller: Principal, entry_id: str) -> EntryPage:
    """Return one entry with its history.

    Args:
        connection: connection on a version, limited to what the caller may see.
        caller: whom it is shown to.
        entry_id: its id.

    Raises:
        NotVisible: it does not exist for the caller.
    """
    found = rows(
        connection,
        """SELECT h.*, e.valid_until FROM entry_history AS h
        LEFT JOIN entries AS e ON e.namespace = h.namespace AND e.entry_id = h.entry_id
        WHERE h.entry_id = $1 ORDER BY h.sequence DESC LIMIT 1""",
        [entry_id],
    )
    if not found or not caller.sees(found[0]["namespace"]):
        raise no_such_entry(entry_id)
    row = found[0]
    story = stories(connection, [row])[row["namespace"], row["entry_id"]]
    texts = texts_of(connection, story.decisions)
    texts |= _texts(connection, row["namespace"], [each for one in story.decisions for each, _ in _scores(one)])
    against = rows(
        connection,
        """SELECT * FROM entries WHERE namespace = $1
        AND (list_contains($2::VARCHAR[], entry_id) OR list_contains(contradicts, $3)) ORDER BY last_said DESC""",
        [row["namespace"], list(row["contradicts"] or ()), row["entry_id"]],
    )
    return EntryPage(
        listed_entry(row),
        bool(row["live"]),
        tuple(map(listed_entry, against)) if row["live"] else (),
        tuple(shown_decision(each, texts, caller) for each in story.decisions),
        story.others,
    )


def _texts(connection: Connection, namespace: str, entries: Sequence[str]) -> dict[str, str]:
    found = rows(
        connection,
        "SELECT DISTINCT entry_id, text FROM entry_history WHERE namespace = $1 "
        "AND entry_id IN (SELECT unnest($2::VARCHAR[]))",
        [namespace, sorted(set(entries))],
    )
    return {each["entry_id"]: each["text"] for each in found}


def shown_decision(row: Row, texts: Mapping[str, str], caller: Principal) -> ShownDecision:
    """Return a decision as a page shows it.

    Args:
        row: row of the view `decisions`, limited to what the caller may see.
        texts: texts of the entries that it names and the caller may see, by id.
        caller: whom it is shown to.
    """

    def named(ids: Sequence[str]) -> tuple[NamedEntry, ...]:
        return tuple(NamedEntry(each, texts[each]) for each in ids if each in texts)

    undone = row["kind"] == "undone"
    return ShownDecision(
        id=row["decision_id"],
        effect=_EFFECTS.get(row["kind"], row["kind"]),
        kind=row["kind"],
        judge=_JUDGES.get(row["judge"], row["judge"]),
        at=row["at"],
        text=row["text"] or "",
        reasoning=row["reasoning"] or "",
        reason=row["reason"] or "",
        explanation=REASONS.get(row["reason"] or "", ""),
        replaces=named(row["retires"] or ()),
        brings=named(row["adds"] or ()) if undone or row["kind"] == "merged" else (),
        links=named(row["links"] or ()),
        compared=tuple(NamedEntry(each, texts[each], score) for each, score in _scores(row) if each in texts),
        session_uri=row["session_uri"] or "",
        evidence=tuple(row["evidence"] or ()),
        said_at=row["said_at"],
        model=row["model"] or "",
        tokens=(row["input_tokens"] or 0) + (row["output_tokens"] or 0),
        cost_usd=row["cost_usd"] or 0.0,
        undone_by=row["undone_by"] or "",
        undoes=row["undoes"] or "",
        may_undo=row["undone_by"] is None and row["kind"] not in ("refused", "quarantined") and _may_undo(row, caller),
    )


def _scores(row: Row) -> list[tuple[str, float]]:
    """Return the entries that a statement was compared with, the most similar first."""
    found = [(str(entry), float(score)) for entry, score in json.loads(row["candidates"] or "[]")]
    return sorted(found, key=lambda each: -each[1])


def _may_undo(row: Row, caller: Principal) -> bool:
    try:
        demand_undo(caller, row["namespace"], _access(row))
    except AccessRefused:
        return False
    return True


def _access(row: Row) -> Access | None:
    return None if row["visibility"] is None else Access(row["visibility"], row["org_id"], row["user_id"])


def demand_undo(caller: Principal, namespace: str, access: Access | None) -> None:
    """Refuse to undo a decision about entries that the caller could not have written itself.

    Args:
        caller: maker of the request.
        namespace: namespace of the decision.
        access: audience of its statement; None for a decision about several entries at once, as that of a restore.

    Raises:
        AccessRefused: the caller may not.
    """
    caller.demand("write")
    if access is not None:
        demand_change(caller, namespace, access)
    elif not caller.sees_everything:
        raise Forbidden("right-missing", "this decision is about entries of everybody; an operator undoes it")


@dataclass(frozen=True, slots=True)
class UndoQuestion:
    """A decision to be undone, with its effects."""

    shown: ShownDecision
    entry_id: str
    """entry whose page leads here; empty if it names none"""


def undo_question(connection: Connection, caller: Principal, decision_id: str) -> UndoQuestion:
    """Return a decision that the caller may undo.

    Args:
        connection: connection on a version, limited to what the caller may see.
        caller: maker of the request.
        decision_id: its whole id.

    Raises:
        NotVisible: it does not exist for the caller.
        Forbidden: the caller may not undo it.
    """
    found = rows(connection, "SELECT * FROM decisions WHERE decision_id = $1", [decision_id])
    if not found or not caller.sees(found[0]["namespace"]):
        raise NotVisible("not-found", f"no decision {decision_id[:80]!r}")
    row = found[0]
    demand_undo(caller, row["namespace"], _access(row))
    texts = texts_of(connection, [row])
    named = [each for each in (row["entry_id"], *(row["adds"] or ()), *(row["retires"] or ())) if each]
    return UndoQuestion(shown_decision(row, texts, caller), named[0] if named else "")


def no_such_entry(entry_id: str) -> NotVisible:
    """Return the refusal for an entry that does not exist, or not for the caller."""
    return NotVisible("not-found", f"no entry {entry_id[:80]!r}")
