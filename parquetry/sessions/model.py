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
"""comparison result: no similar entry is known; it is known; it forms one entry with others; it says the opposite"""
DecisionKind = Literal["new", "existing", "merged", "contradicts", "refused", "quarantined", "undone"]
Judge = Literal["identity", "similarity", "model", "guard", "operator"]
"""decided by: equal texts; nearly equal texts or no candidate; the language model; a guard over it; a person"""


# --- read


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat, or one of its parts where speech and tool use are mixed."""

    id: str
    """id from the transcript, or else `m` and its ordinal; unique within the session and stable as it grows"""
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
    """One chat session read from a file."""

    name: str
    """name in the format, stable as the session grows; empty for the first of a file without names"""
    title: str | None
    format: str
    """short name of the format: `openai`, `chatgpt`, `claude-code`, ..."""
    messages: tuple[Message, ...]
    """in order, at least one"""
    metadata: Mapping[str, Scalar]
    """other data of the format: model, working folder, ..."""


@dataclass(frozen=True, slots=True)
class Window:
    """Part of a session that the language model reads at once."""

    index: int
    """0-based within the session"""
    context: tuple[Message, ...]
    """earlier messages that were read already: for understanding, never as evidence alone"""
    messages: tuple[Message, ...]
    """messages to learn from"""


# --- distil


@dataclass(frozen=True, slots=True)
class Owner:
    """Owner of a session, with the maximum visibility of its entries."""

    namespace: str
    org_id: str | None
    user_id: str | None
    widest: Visibility
    """maximum visibility of the session's entries"""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionRef:
    """Reference to the session that something comes from."""

    session_id: str
    """`parquetry.ids.document_id` of the session's row"""
    uri: str
    """of the file, with `#` and the session's name if it holds several"""
    owner: Owner


@dataclass(frozen=True, slots=True)
class Draft:
    """Statement that passed every check and is not yet compared with known entries."""

    session: SessionRef
    kind: EntryKind
    text: str
    """one self-contained statement"""
    access: Access
    """audience: its exact scope"""
    confidence: float
    """0 to 1"""
    evidence: tuple[str, ...]
    """ids of the supporting messages, in order, at least one"""
    said_at: datetime
    """UTC, time of the last message of the evidence; start of the validity"""
    lowered: str | None
    """reason why the visibility is narrower than the model proposed; None if it is not"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Proposal of the model that a check rejected, or an invalid reply."""

    session: SessionRef
    reason: str
    """short code in kebab-case: `low-confidence`, `no-evidence`, `instruction`, `recalled`, `personal-data`, ..."""
    detail: str
    """one sentence for people"""
    text: str
    """the proposal; if the whole reply was invalid, the raw reply cut to a limit"""
    quarantined: bool
    """True if the whole reply was invalid"""


# --- compare


@dataclass(frozen=True, slots=True)
class Entry:
    """One piece of knowledge. Its text is immutable: a merge makes another entry."""

    entry_id: str
    """`parquetry.ids.entry_id` of its scope and its text"""
    namespace: str
    kind: EntryKind
    text: str
    access: Access
    """its exact scope"""
    confidence: float
    """0 to 1"""
    valid_from: datetime
    """UTC"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Live entry of the same scope that may say the same as a draft."""

    ordinal: int
    """1-based: the only identity that the language model sees"""
    entry: Entry
    score: float
    """cosine of the vectors"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Verdict on a draft, with its reason."""

    verdict: Verdict
    judge: Judge
    text: str | None
    """for a merge, the combined text of the draft and the entries that it replaces; None otherwise"""
    concerns: tuple[int, ...]
    """ordinals of the candidates that it is equal to, replaces or contradicts; if a guard made it new, of those that it
    is linked with"""
    reasoning: str
    reason: str | None
    """short code of the guard that overruled the model; None if none did"""


# --- record


@dataclass(frozen=True, slots=True)
class Spent:
    """Cost of the calls behind a decision."""

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
    """None for a decision by a person"""
    session_uri: str | None
    user_id: str | None
    """owner of the session"""
    said_at: datetime | None
    """UTC, time of the last message of the evidence; None for a decision by a person"""
    evidence: tuple[str, ...]
    """ids of messages of the session"""
    text: str
    """text of the draft; of an invalid reply, cut to a limit"""
    entry_kind: EntryKind | None
    access: Access | None
    """scope of the draft"""
    confidence: float | None
    entry_id: str | None
    """entry that says it from now on; None if none does"""
    adds: tuple[str, ...]
    """entries that became live"""
    retires: tuple[str, ...]
    """entries that ceased to be live"""
    links: tuple[str, ...]
    """live entries that it contradicts, or that it should have been merged with but was not"""
    candidates: tuple[tuple[str, float], ...]
    """ids and scores of the entries that it was compared with"""
    reasoning: str
    reason: str | None
    """short code of the check or guard that decided"""
    undoes: str | None
    """decision that this one undoes"""
    spent: Spent
