"""The record types of session knowledge, from a message of a chat to a decision about an entry.

One frozen type per stage. Ordinals are 1-based; indexes are 0-based, and an `end` is one past the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from parquetry.model import Access, Scalar, Visibility

Role = Literal["system", "user", "assistant", "tool"]
MessageKind = Literal["speech", "tool_call", "tool_result", "thinking"]
EntryKind = Literal["methodology", "preference", "tool", "lesson", "fact"]
Verdict = Literal["new", "existing", "merged", "contradicts"]
"""of a comparison: nothing like it is known; it is known; it makes one entry with others; it says the opposite"""
DecisionKind = Literal["new", "existing", "merged", "contradicts", "refused", "quarantined", "undone"]
Judge = Literal["identity", "similarity", "model", "guard", "operator"]
"""who decided: equal texts; nearly equal texts or no candidate; the language model; a guard over it; a person"""


# --- read


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat, or one of its parts where speech and tool use are mixed."""

    id: str
    """as the transcript names it, else `m` and its ordinal; unique within the session and stable when it grows"""
    role: Role
    kind: MessageKind
    text: str
    """line feeds only, no control characters but tab and line feed"""
    at: datetime | None
    """UTC"""
    tool: str | None
    """name of the tool of a call or a result"""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One chat session as a file holds it."""

    name: str
    """as the format names the session, stable when it grows; empty for the first of a file without names"""
    title: str | None
    format: str
    """short name of the format: `openai`, `chatgpt`, `claude-code`, ..."""
    messages: tuple[Message, ...]
    """in order, at least one"""
    metadata: Mapping[str, Scalar]
    """what else the format tells: model, working folder, ..."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a session that the language model reads at once."""

    index: int
    """0-based within the session"""
    context: tuple[Message, ...]
    """messages before, which were read already: to understand the others, never as evidence alone"""
    messages: tuple[Message, ...]
    """to learn from"""


# --- distil


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose session it is, and how widely what is learned from it may be shown at most."""

    namespace: str
    org_id: str | None
    user_id: str | None
    widest: Visibility
    """no entry of the session becomes visible more widely than this"""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionRef:
    """Which session something comes from."""

    session_id: str
    """`parquetry.ids.document_id` of the session's row"""
    uri: str
    """of the file, with `#` and the session's name if it holds several"""
    owner: Owner


@dataclass(frozen=True, slots=True)
class Draft:
    """Something learned, accepted by every check, not yet compared with what is known."""

    session: SessionRef
    kind: EntryKind
    text: str
    """one statement that can be understood alone"""
    access: Access
    """who may see it: its scope, exactly"""
    confidence: float
    """0 to 1"""
    evidence: tuple[str, ...]
    """ids of the messages that support it, in order, at least one"""
    said_at: datetime
    """UTC, of the last message of the evidence; from then on it is valid"""
    lowered: str | None
    """why it is visible less widely than the model proposed; None if it is not"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that the model proposed and a check did not let pass, or a reply that could not be used."""

    session: SessionRef
    reason: str
    """short code in kebab-case: `low-confidence`, `no-evidence`, `instruction`, `recalled`, `personal-data`, ..."""
    detail: str
    """one sentence for a person"""
    text: str
    """what was proposed; the raw reply, cut to a limit, if the whole reply was of no use"""
    quarantined: bool
    """the whole reply was of no use"""


# --- compare


@dataclass(frozen=True, slots=True)
class Entry:
    """One piece of knowledge. Its text never changes: what is merged is another entry."""

    entry_id: str
    """`parquetry.ids.entry_id`: of its scope and its text"""
    namespace: str
    kind: EntryKind
    text: str
    access: Access
    """its scope, exactly"""
    confidence: float
    """0 to 1"""
    valid_from: datetime
    """UTC"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A live entry of the same scope that may say the same as a draft."""

    ordinal: int
    """1-based: all that the language model sees of its identity"""
    entry: Entry
    score: float
    """cosine of the vectors"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is to become of a draft, and why."""

    verdict: Verdict
    judge: Judge
    text: str | None
    """of a merge: what the draft and the entries that it replaces say together; None otherwise"""
    concerns: tuple[int, ...]
    """ordinals of the candidates that it is equal to, replaces or contradicts; of those that it stays apart from and is
    linked with, if a guard made it new"""
    reasoning: str
    reason: str | None
    """short code of the guard that overruled the model; None if none did"""


# --- record


@dataclass(frozen=True, slots=True)
class Spent:
    """What the calls behind a decision cost."""

    model: str | None
    """None if no model was asked"""
    prompt: str | None
    """version of the prompt"""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """One verdict about a draft, a reply or an earlier decision. Never changed, never deleted."""

    decision_id: str
    """`parquetry.ids.decision_id`"""
    namespace: str
    kind: DecisionKind
    judge: Judge
    at: datetime
    """UTC"""
    run_id: str
    session_id: str | None
    """None for what a person decided"""
    session_uri: str | None
    user_id: str | None
    """whose session it was"""
    said_at: datetime | None
    """UTC, of the last message of the evidence; None for what a person decided"""
    evidence: tuple[str, ...]
    """ids of messages of the session"""
    text: str
    """of the draft; of a reply that could not be used, cut to a limit"""
    entry_kind: EntryKind | None
    access: Access | None
    """scope of the draft"""
    confidence: float | None
    entry_id: str | None
    """the entry that says it from now on; None if none does"""
    adds: tuple[str, ...]
    """entries that became live"""
    retires: tuple[str, ...]
    """entries that were live and are not any more"""
    links: tuple[str, ...]
    """live entries that it contradicts, or that it should have been merged with and was not"""
    candidates: tuple[tuple[str, float], ...]
    """ids and scores of the entries that it was compared with"""
    reasoning: str
    reason: str | None
    """short code of the check or guard that decided"""
    undoes: str | None
    """the decision that this one takes back"""
    spent: Spent
