"""Effects of a comparison on the live entries of a scope. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from parquetry import ids
from parquetry.model import Access
from parquetry.sessions.ledger.entry_rows import EntryScope
from parquetry.sessions.model import Candidate, Comparison, Draft, Entry

REJECTED = "rejected"
"""reason of a merge that a person rejected: both entries are kept"""


@dataclass(frozen=True, slots=True)
class Effects:
    """Changes to live entries."""

    entry: Entry
    """entry that says it from now on"""
    adds: tuple[str, ...]
    retires: tuple[str, ...]
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeProposal:
    """Merge that a person may reject."""

    key: str
    """stable key of the proposed merge"""
    session_uri: str
    learned: str
    """the new statement"""
    replaced: tuple[str, ...]
    """texts of the entries that would be retired"""
    merged: str
    """text that would replace all of them"""
    reasoning: str
    namespace: str
    access: Access
    """audience of the statement, of the entries and of the text"""
    session_user: str | None
    """user of the session"""


def entry_of_draft(draft: Draft, scope: EntryScope) -> Entry:
    """Return the entry with the content of a draft."""
    return Entry(
        entry_id_in(scope, draft.text),
        scope.namespace,
        draft.kind,
        draft.text,
        draft.access,
        draft.confidence,
        draft.said_at,
    )


def entry_id_in(scope: EntryScope, text: str) -> str:
    """Return the id of the entry of a scope with this text."""
    return ids.entry_id(scope.namespace, (scope.visibility, scope.org_id, scope.user_id), text)


def effects_of(
    draft: Draft,
    scope: EntryScope,
    comparison: Comparison,
    candidates: Sequence[Candidate],
    is_live: Callable[[str], bool],
) -> Effects:
    """Return the effects of a comparison.

    Args:
        draft: that was compared.
        scope: its scope.
        comparison: its result.
        candidates: that it was compared with, in the order of their ordinals.
        is_live: returns True for a live entry of the scope.
    """
    concerned = [candidates[ordinal - 1].entry for ordinal in comparison.concerns]
    said = tuple(entry.entry_id for entry in concerned)
    if comparison.verdict == "existing":
        return Effects(concerned[0], (), (), ())
    if comparison.verdict == "merged" and comparison.text is not None:
        merged = Entry(
            entry_id_in(scope, comparison.text),
            scope.namespace,
            concerned[0].kind,
            comparison.text,
            draft.access,
            max(draft.confidence, *(entry.confidence for entry in concerned)),
            max(draft.said_at, *(entry.valid_from for entry in concerned)),
        )
        adds = () if is_live(merged.entry_id) else (merged.entry_id,)
        return Effects(merged, adds, tuple(entry for entry in said if entry != merged.entry_id), ())
    entry = entry_of_draft(draft, scope)
    adds = () if is_live(entry.entry_id) else (entry.entry_id,)
    return Effects(entry, adds, (), tuple(each for each in said if each != entry.entry_id))


def proposal_of(
    draft: Draft, scope: EntryScope, comparison: Comparison, candidates: Sequence[Candidate]
) -> MergeProposal:
    """Return a merge in the form shown to a person for approval."""
    replaced = tuple(candidates[ordinal - 1].entry.text for ordinal in comparison.concerns)
    merged = comparison.text or ""
    key = ids.text_hash("\x00".join((draft.session.session_id, draft.text, merged, *replaced)))[:12]
    return MergeProposal(
        key,
        draft.session.uri,
        draft.text,
        replaced,
        merged,
        comparison.reasoning,
        scope.namespace,
        draft.access,
        draft.session.owner.user_id,
    )


def rejected(comparison: Comparison) -> Comparison:
    """Return the comparison for a rejected merge: the draft is kept beside the entries that it would have replaced."""
    reasoning = f"a person kept both; the model had proposed: {comparison.reasoning}"
    return Comparison("new", "operator", None, comparison.concerns, reasoning, REJECTED)
