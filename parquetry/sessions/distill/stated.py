"""Statements that are handed in as such: they pass the checks of every statement, and no model is asked for them."""

from __future__ import annotations

import json

from parquetry.llm.client import Completion
from parquetry.sessions.distill.replies import Question
from parquetry.sessions.model import EntryKind, Window

KIND: EntryKind = "fact"
"""kind of a statement whose author names none"""
_LABEL = "m1"
"""label of the only message of a window"""


class StatedReply:
    """The reply about a session that is one statement: the statement itself, as widely visible as its session allows.

    Args:
        window: window with the one message.
    """

    model = ""

    def __init__(self, window: Window) -> None:
        (message,) = window.messages
        self._text = message.text

    def ask(self, question: Question) -> Completion:
        """Return the reply."""
        entry = {
            "text": self._text,
            "kind": KIND,
            "level": question.owner.widest,
            "confidence": 1.0,
            "evidence": [_LABEL],
        }
        return Completion(json.dumps({"entries": [entry]}), 0, 0)
