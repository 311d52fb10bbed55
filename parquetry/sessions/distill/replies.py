"""Questions to the language model that are answered in a form, with one more try, and answers of no use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from parquetry.credentials import masked
from parquetry.errors import BrokenDocument, TransientError
from parquetry.llm.calls import BAD_REPLY, REPLY_CUT
from parquetry.llm.client import TOO_LONG, Answer
from parquetry.llm.json_reply import asked_again, complaint, json_object
from parquetry.llm.spending import Purpose
from parquetry.sessions.model import Owner, Spent
from parquetry.sessions.prompts import Prompt

QUARANTINED = 4000
"""characters that are kept of a reply that was of no use"""
_SCHEMA_WORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
}  # fmt: skip
"""that every service with structured outputs knows; what else a field has to be is checked afterwards"""


class Reply(BaseModel):
    """Base of what a model may reply. Every field is required; what else it says is left aside."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Question:
    """What a language model is asked about a session."""

    purpose: Purpose
    """under which its cost counts"""
    owner: Owner
    """whose words are in it"""
    messages: tuple[Mapping[str, Any], ...]
    """of the conversation"""
    reply: type[Reply]
    """what the answer has to be"""
    form: str
    """name of what is asked for, and version of the prompt"""

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON schema of the reply."""
        return strict_schema(self.reply)

    def is_answered_by(self, text: str) -> bool:
        """Whether a text is what was asked for."""
        try:
            parsed(text, self.reply)
        except ValueError:
            return False
        return True


class Asker(Protocol):
    """Whoever brings a question to the language model, or remembers its answer."""

    @property
    def model(self) -> str:
        """Name of the language model."""

    def ask(self, question: Question) -> Answer:
        """What the model says.

        Raises:
            ParquetryError: as `LanguageModel.ask`.
        """


R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True)
class Useless:
    """No usable reply was given, or none at all."""

    reason: str
    """`bad-reply`: not what was asked for, twice; `reply-cut`: it reached its limit of tokens before it was complete,
    twice; `input-rejected`: the service or the model refuses to answer"""
    detail: str
    """one sentence for a person"""
    raw: str
    """the last reply, without credentials, its first QUARANTINED characters; empty if there was none"""


def request(
    asker: Asker,
    purpose: Purpose,
    owner: Owner,
    prompt: Prompt,
    content: str,
    form: type[R],
    read: Callable[[str], R] | None = None,
) -> tuple[R | Useless, Spent]:
    """Ask for a reply of a form, and once more, with what was wrong, if it is not of that form.

    Args:
        asker: of the language model.
        purpose: under which the cost counts.
        owner: whose words are in the question.
        prompt: what the model is told to do.
        content: what it is to be done with, as JSON.
        form: of the reply. A ValueError of its validators is a reason to ask once more.
        read: makes it of a text in another way than all or nothing; a ValueError is a reason to ask once more.

    Returns:
        The reply, or why there is none, and what asking cost.

    Raises:
        TransientError: the service failed, every time it was tried.
        SettingsError: the key, the quota or the model's name is not in order.
        RefusedError: the budget does not allow the call.
    """
    messages = [{"role": "system", "content": prompt.text}, {"role": "user", "content": content}]
    name = f"{prompt.name} {prompt.version}"
    spent = Spent(asker.model, prompt.version)
    wrong, raw, cut = "", "", False
    for _ in range(2):
        try:
            answer = asker.ask(Question(purpose, owner, tuple(messages), form, name))
        except BrokenDocument as error:
            return Useless(error.reason, error.detail, kept(raw)), spent
        except TransientError as error:
            if error.reason != BAD_REPLY:
                raise
            return Useless(BAD_REPLY, error.detail, kept(raw)), spent
        spent = replace(
            spent,
            input_tokens=spent.input_tokens + answer.input_tokens,
            output_tokens=spent.output_tokens + answer.output_tokens,
            cost_usd=spent.cost_usd + answer.cost_usd,
        )
        raw, cut = answer.text, answer.cut
        try:
            return read(raw) if read else parsed(raw, form), spent
        except ValueError as error:
            wrong = complaint(error, cut=cut)
        messages += asked_again(raw, wrong, cut=cut)
    if cut:
        return Useless(REPLY_CUT, f"the reply was cut before its end: {TOO_LONG}", kept(raw)), spent
    return Useless(BAD_REPLY, f"the reply was not what was asked for, twice: {wrong}", kept(raw)), spent


def parsed(text: str, form: type[R]) -> R:
    """A reply of a form.

    Raises:
        ValueError: the text is none.
    """
    return form.model_validate(json_object(text))


def kept(raw: str) -> str:
    """What is kept of a reply that was of no use."""
    return masked(raw)[:QUARANTINED]


def strict_schema(form: type[Reply]) -> dict[str, Any]:
    """JSON schema of a reply, as services with structured outputs take it: nothing may be left out or added.

    Source: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
    """
    strict: dict[str, Any] = _strict(form.model_json_schema())
    return strict


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    strict: dict[str, Any] = {}
    for word, value in schema.items():
        if word in {"properties", "$defs"}:
            strict[word] = {name: _strict(each) for name, each in value.items()}
        elif word in _SCHEMA_WORDS:
            strict[word] = _strict(value)
    if strict.get("type") == "object":
        strict["additionalProperties"] = False
    return strict
