"""Structured questions to the language model, with one retry, and the record of invalid replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from parquetry.credentials import masked
from parquetry.errors import BrokenDocument, TransientError
from parquetry.llm.calls import BAD_REPLY, REPLY_CUT
from parquetry.llm.client import TOO_LONG, Completion
from parquetry.llm.json_reply import asked_again, complaint, json_object
from parquetry.llm.spending import Purpose
from parquetry.sessions.model import Owner, Spent
from parquetry.sessions.prompts import Prompt

QUARANTINED = 4000
"""maximum characters kept of an invalid reply"""
_SCHEMA_WORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
}  # fmt: skip
"""JSON schema words that every service with structured outputs knows; other constraints are checked afterwards"""


class Reply(BaseModel):
    """Base of the model's replies. Every field is required; unknown fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Question:
    """Question to a language model about a session."""

    purpose: Purpose
    """purpose under which its cost counts"""
    owner: Owner
    """owner of the session quoted in it"""
    messages: tuple[Mapping[str, Any], ...]
    """messages of the conversation"""
    reply: type[Reply]
    """required type of the reply"""
    form: str
    """name of the reply form, and version of the prompt"""

    @property
    def schema(self) -> Mapping[str, Any]:
        """Return the JSON schema of the reply."""
        return strict_schema(self.reply)

    def is_answered_by(self, text: str) -> bool:
        """Return True if a text is a valid reply."""
        try:
            parsed(text, self.reply)
        except ValueError:
            return False
        return True


class LlmClient(Protocol):
    """Client of the language model: asks it, or returns a cached answer."""

    @property
    def model(self) -> str:
        """Return the name of the language model."""

    def ask(self, question: Question) -> Completion:
        """Return the model's answer.

        Raises:
            ParquetryError: as `LanguageModel.ask`.
        """


R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, slots=True)
class Useless:
    """Absence of a usable reply."""

    reason: str
    """`bad-reply`: two invalid replies in a row; `reply-cut`: two replies in a row truncated at the token limit;
    `input-rejected`: the service or the model refuses to answer"""
    detail: str
    """one sentence for people"""
    raw: str
    """the last reply, without credentials, its first QUARANTINED characters; empty if there was none"""


def request(
    llm: LlmClient,
    purpose: Purpose,
    owner: Owner,
    prompt: Prompt,
    content: str,
    form: type[R],
    read: Callable[[str], R] | None = None,
) -> tuple[R | Useless, Spent]:
    """Ask for a structured reply, and retry once with a description of the error if it is invalid.

    Args:
        llm: client of the language model.
        purpose: purpose under which the cost counts.
        owner: owner of the session quoted in the question.
        prompt: instructions for the model.
        content: input of the model, as JSON.
        form: type of the reply. A ValueError of its validators causes the retry.
        read: parses the text in another way than all or nothing; a ValueError causes the retry.

    Returns:
        The reply, or the reason why there is none, and the cost.

    Raises:
        TransientError: every try of the service failed.
        SettingsError: the key, the quota or the model's name is invalid.
        RefusedError: the budget does not allow the call.
    """
    messages = [{"role": "system", "content": prompt.text}, {"role": "user", "content": content}]
    name = f"{prompt.name} {prompt.version}"
    spent = Spent(llm.model, prompt.version)
    wrong, raw, cut = "", "", False
    for _ in range(2):
        try:
            answer = llm.ask(Question(purpose, owner, tuple(messages), form, name))
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
    """Parse a reply of a form.

    Raises:
        ValueError: the text is not one.
    """
    return form.model_validate(json_object(text))


def kept(raw: str) -> str:
    """Return the part of an invalid reply that is stored."""
    return masked(raw)[:QUARANTINED]


def strict_schema(form: type[Reply]) -> dict[str, Any]:
    """Return the JSON schema of a reply as services with structured outputs require it: exactly its own properties.

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
