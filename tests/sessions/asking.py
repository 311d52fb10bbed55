"""Helpers for tests of session knowledge: a window of a session, and the language model called directly."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from parquetry.llm.calls import RetryPolicy
from parquetry.llm.client import Completion, LanguageModel
from parquetry.llm.spending import Ledger
from parquetry.model import Visibility
from parquetry.sessions.distill.learn import Distilled, distill
from parquetry.sessions.distill.recall_filter import Recalled
from parquetry.sessions.distill.replies import Question
from parquetry.sessions.model import Message, Owner, SessionRef, Window
from parquetry.sessions.prompts import Prompt, load_prompt
from parquetry.settings.llm import LlmSettings, SessionsSettings
from tests.servers.chat_server import ChatServer

DAY = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
PROMPT = load_prompt("distill", None)
ADA = Owner("default", "guild", "ada", "public")


class DirectAsker:
    """Call the model directly, with a clock that never waits."""

    def __init__(self, server: ChatServer, attempts: int = 1, timeout: float = 60, **settings: Any) -> None:
        self.ledger = Ledger()
        chosen = LlmSettings(
            model="m", base_url=server.url, attempts=attempts, timeout_seconds=timeout, api_key=None, **settings
        )
        patience = RetryPolicy(attempts, lambda _: None, lambda: 0.0, lambda: 0.0)
        self._model = LanguageModel(chosen, "distill", self.ledger, patience)
        self.asked: list[Question] = []

    @property
    def model(self) -> str:
        return self._model.model

    def ask(self, question: Question) -> Completion:
        self.asked.append(question)
        return self._model.ask(question.messages, question.schema)


def message(id: str, text: str, role: str = "user", kind: str = "speech", minute: int | None = None) -> Message:
    at = None if minute is None else DAY.replace(minute=minute)
    return Message(id, role, kind, text, at, "k6" if kind.startswith("tool") else None)


KILN = (
    message("a-1", "Which kiln do you use for walnut?", "assistant", minute=1),
    message("a-2", "Kiln 3 dries walnut, always. We settled on that after the spring.", minute=2),
    message("a-3", '{"kiln": 3, "wood": "walnut"}', "tool", "tool_result", minute=3),
    message("a-4", "Then kiln 3 it is.", "assistant", minute=4),
)
BEFORE = (message("a-0", "Let us talk about the workshop.", minute=0),)


def session(owner: Owner = ADA) -> SessionRef:
    return SessionRef("s-1", "chats/a.json", owner)


def proposal(text: str = "Walnut is dried in kiln 3.", **changed: Any) -> dict[str, Any]:
    """Return an entry as a good model proposes it."""
    good = {"kind": "fact", "level": "organization", "confidence": 0.9, "evidence": ["m2"]}
    return {"text": text, **good, **changed}


def learned(
    llm: DirectAsker,
    messages: Sequence[Message] = KILN,
    *,
    context: Sequence[Message] = (),
    owner: Owner = ADA,
    recalled: Recalled | None = None,
    prompt: Prompt = PROMPT,
    **settings: Any,
) -> Distilled:
    window = Window(0, tuple(context), tuple(messages))
    chosen = SessionsSettings(**settings)
    return distill(window, session(owner), DAY, recalled or Recalled(), llm, prompt, chosen)


def owner(user: str | None, org: str | None, widest: Visibility) -> Owner:
    return Owner("default", org, user, widest, ("chat",))
