"""Distilling a window of a session: the language model proposes entries, and code checks them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from parquetry import ids
from parquetry.credentials import masked
from parquetry.llm.client import ANSWER_TOKENS, expected_tokens
from parquetry.model import Access, Visibility
from parquetry.sessions.distill.injection import is_instruction
from parquetry.sessions.distill.personal_data import personal_data
from parquetry.sessions.distill.prompt_input import Frame, frame
from parquetry.sessions.distill.recall_filter import Recalled
from parquetry.sessions.distill.replies import LlmClient, Reply, Useless, request
from parquetry.sessions.distill.small_talk import small_talk
from parquetry.sessions.distill.support import unsupported
from parquetry.sessions.model import Draft, EntryKind, Message, Owner, Refusal, SessionRef, Spent, Window
from parquetry.sessions.prompts import Prompt
from parquetry.settings.llm import SessionsSettings

TEXT_CHARACTERS = 1000
"""maximum characters of an entry: a statement has one or two sentences"""
ENTRIES = 50
"""maximum entries taken from a window: a model that writes more copies the session"""
WITHHELD = "[personal data]"
"""placeholder in a refusal for a text that must not be stored"""
_WIDER: dict[Visibility, int] = {"individual": 0, "organization": 1, "public": 2}
_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Cn"}
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)
"""any date will do: all have the same length"""
_JOINERS = "\u200c\u200d"
"""invisible joiners, required by some scripts"""


class Proposal(Reply):
    """One entry proposed by the model."""

    text: str
    kind: EntryKind
    level: Visibility
    confidence: Annotated[float, Field(ge=0, le=1)]
    evidence: list[str]


class Proposals(Reply):
    """Reply of the model."""

    entries: list[Proposal]


@dataclass(frozen=True, slots=True)
class Distilled:
    """Result of distilling a window."""

    drafts: tuple[Draft, ...]
    refusals: tuple[Refusal, ...]
    spent: Spent


class _Objection(Exception):
    """Reason for rejecting a proposal."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def distill(
    window: Window,
    session: SessionRef,
    at: datetime,
    recalled: Recalled,
    llm: LlmClient,
    prompt: Prompt,
    settings: SessionsSettings,
) -> Distilled:
    """Learn from a window of a session.

    Args:
        window: of the session.
        session: owner and maximum visibility.
        at: UTC, of the session; used for messages without a time.
        recalled: texts that the session was shown from the knowledge base.
        llm: client of the language model.
        prompt: instructions for the model.
        settings: minimum confidence, and the treatment of personal data.

    Returns:
        Drafts that passed every check, each statement once, and the refusals with their reasons.

    Raises:
        TransientError: every try of the service failed.
        SettingsError: the key, the quota or the model's name is invalid.
        RefusedError: the budget does not allow the call.
    """
    framed = frame(window, at)
    reply, spent = request(llm, "distill", session.owner, prompt, framed.content, Proposals)
    if isinstance(reply, Useless):
        return Distilled((), (Refusal(session, reply.reason, reply.detail, reply.raw, quarantined=True),), spent)
    check = _Check(framed, session, at, recalled, prompt, settings)
    drafts: dict[str, Draft] = {}
    refusals = []
    for number, proposal in enumerate(reply.entries, start=1):
        text = statement(proposal.text)
        try:
            draft = check.passed(number, proposal, text)
        except _Objection as objection:
            shown = WITHHELD if objection.reason == "personal-data" else masked(text)[:TEXT_CHARACTERS]
            refusals.append(Refusal(session, objection.reason, objection.detail, shown, quarantined=False))
            continue
        scope = (draft.access.visibility, draft.access.org_id, draft.access.user_id)
        key = ids.entry_id(session.owner.namespace, scope, draft.text)
        drafts[key] = _united(drafts[key], draft, framed) if key in drafts else draft
    return Distilled(tuple(drafts.values()), tuple(refusals), spent)


def estimated_tokens(window: Window, prompt: Prompt) -> tuple[int, int]:
    """Estimate the tokens that distilling a window reads and writes."""
    messages = [{"content": prompt.text}, {"content": frame(window, _ANY_DAY).content}]
    return expected_tokens(messages), ANSWER_TOKENS


def statement(text: str) -> str:
    """Normalise a proposed text for storage: one line, composed letters, no invisible characters."""
    line = " ".join(text.split())
    shown = "".join(c for c in line if c in _JOINERS or unicodedata.category(c) not in _INVISIBLE)
    return unicodedata.normalize("NFC", " ".join(shown.split()))


@dataclass(frozen=True, slots=True)
class _Check:
    """Checks of one window."""

    frame: Frame
    session: SessionRef
    at: datetime
    recalled: Recalled
    prompt: Prompt
    settings: SessionsSettings

    def passed(self, number: int, proposal: Proposal, text: str) -> Draft:
        """Return the draft made from a proposal, number `number` of its reply.

        Raises:
            _Objection: the proposal is rejected.
        """
        if number > ENTRIES:
            raise _Objection("too-many", f"is number {number} of a reply of which {ENTRIES} are taken")
        if not any(letter.isalnum() for letter in text):
            raise _Objection("empty", "says nothing")
        if len(text) > TEXT_CHARACTERS:
            raise _Objection("too-long", f"has {len(text):,} characters, more than {TEXT_CHARACTERS:,}")
        if proposal.confidence < self.settings.min_confidence:
            least = self.settings.min_confidence
            raise _Objection("low-confidence", f"{proposal.confidence:g} is below sessions.min_confidence = {least:g}")
        labels = self._evidence(proposal.evidence)
        if is_instruction(text, self.prompt.text):
            raise _Objection("instruction", "is an order to a model or a memory, and no knowledge")
        if masked(text) != text:
            raise _Objection("secret", "holds a key, a password or a token, which is never stored")
        if self.recalled.copied(text):
            raise _Objection("recalled", "repeats what the session was shown from the knowledge base")
        if wrong := small_talk(text):
            raise _Objection("not-knowledge", wrong)
        access, lowered = self._access(proposal.level, text)
        evidence = [self.frame.labelled[label] for label in labels]
        said_at = next((message.at for message in reversed(evidence) if message.at is not None), self.at)
        if wrong := unsupported(text, self._texts(labels), self._said(), said_at):
            raise _Objection("unsupported", wrong)
        return Draft(
            session=self.session,
            kind=proposal.kind,
            text=text,
            access=access,
            confidence=proposal.confidence,
            evidence=tuple(dict.fromkeys(message.id for message in evidence)),
            said_at=said_at,
            lowered=lowered,
        )

    def _texts(self, labels: Sequence[str]) -> list[str]:
        """Return the texts of the evidence, and of the questions that it answers."""
        messages = list(self.frame.labelled.values())
        named = [place for place, label in enumerate(self.frame.labelled) if label in set(labels)]
        asked = [place - 1 for place in named if place and _asks(messages[place - 1])]
        return [messages[place].text for place in sorted({*named, *asked})]

    def _said(self) -> list[str]:
        """Return the texts of all messages up to the end of this part of the session."""
        return [message.text for message in self.frame.labelled.values() if _is_said(message)]

    def _evidence(self, named: Sequence[str]) -> list[str]:
        """Return the labels of messages that exist, in order."""
        labels = [label for label in self.frame.labelled if label in set(named)]
        new = [label for label in labels if label in self.frame.to_learn_from]
        if not new:
            raise _Objection("no-evidence", "names no message of this part of the session as its evidence")
        if not any(_is_said(self.frame.labelled[label]) for label in labels):
            raise _Objection("not-said", "rests on tools, thoughts or system messages alone: nobody said it")
        return labels

    def _access(self, level: Visibility, text: str) -> tuple[Access, str | None]:
        """Return the access of an entry, and the reason if it is narrower than the model proposed."""
        owner = self.session.owner
        lowered = None
        if _WIDER[level] > _WIDER[owner.widest]:
            level, lowered = owner.widest, f"the session allows {owner.widest} at most"
        if level != "individual" and (kinds := personal_data(text)):
            held = f"holds personal data ({', '.join(kinds)})"
            if self.settings.personal_data == "refuse" or owner.user_id is None:
                instead = "the session has no user" if self.settings.personal_data == "individual" else "by setting"
                raise _Objection("personal-data", f"{held} and cannot be kept for its user alone: {instead}")
            level, lowered = "individual", held
        return _scope(level, owner), lowered


def _is_said(message: Message) -> bool:
    return message.kind == "speech" and message.role in {"user", "assistant"}


def _asks(message: Message) -> bool:
    return _is_said(message) and message.text.rstrip(" \n\"')*_`”’").endswith(("?", "？", "؟"))


def _scope(level: Visibility, owner: Owner) -> Access:
    if level == "individual":
        if owner.user_id is None:
            raise _Objection("no-owner", "is for one user, and the session has none")
        return Access(level, owner.org_id, owner.user_id, owner.tags)
    if level == "organization":
        if owner.org_id is None:
            raise _Objection("no-owner", "is for an organization, and the session has none")
        return Access(level, owner.org_id, None, owner.tags)
    return Access(level, None, None, owner.tags)


def _united(one: Draft, other: Draft, framed: Frame) -> Draft:
    """Merge two drafts of a window that say the same."""
    surer = one if one.confidence >= other.confidence else other
    named = {*one.evidence, *other.evidence}
    evidence = dict.fromkeys(message.id for message in framed.labelled.values() if message.id in named)
    return replace(
        surer,
        evidence=tuple(evidence),
        said_at=max(one.said_at, other.said_at),
        lowered=one.lowered and other.lowered,
    )
