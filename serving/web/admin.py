"""Pages for the operator: tokens, audit events and settings, as rows to show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel, SecretStr

from parquetry.errors import SettingsError
from parquetry.masking import MASK, masked
from parquetry.plural import counted
from parquetry.serving.access.tokens import State, Token
from parquetry.settings.sections import Settings

LIFETIMES: Mapping[str, timedelta | None] = {
    "1d": timedelta(days=1),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
    "365d": timedelta(days=365),
    "": None,
}
"""choices for the validity of a new token; `` for one without an end"""
_LONGEST_VALUE = 2000
"""characters of a setting's value"""


@dataclass(frozen=True, slots=True)
class ListedToken:
    """A token in a list, without its secret."""

    token: Token
    state: State
    scope: str
    """the documents that it sees"""


def listed_tokens(tokens: Sequence[Token], now: datetime) -> list[ListedToken]:
    """Return tokens as a list shows them: valid ones first, the newest of each kind first.

    Args:
        tokens: all tokens.
        now: time at which they are valid or not.
    """
    listed = [ListedToken(each, each.state(now), _scope(each)) for each in tokens]
    return sorted(listed, key=lambda each: (each.state != "active", -each.token.created_at.timestamp()))


def _scope(token: Token) -> str:
    who = [name for name in (token.user_id, token.org_id) if name]
    if who:
        return " of ".join(who)
    return "Everything" if "admin" in token.rights else "Public documents"


def expiry_of(chosen: str, now: datetime | None = None) -> datetime | None:
    """Return the end of a new token's validity; None for no end.

    Args:
        chosen: a key of `LIFETIMES`.
        now: time from which on it is valid; None for the current time.

    Raises:
        SettingsError: there is no such choice.
    """
    if chosen not in LIFETIMES:
        raise SettingsError("choose how long the token is valid")
    lifetime = LIFETIMES[chosen]
    return None if lifetime is None else (now or datetime.now(UTC)) + lifetime


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An audit event as one line of a table."""

    at: datetime
    event: str
    caller: str
    namespace: str
    outcome: str
    """counts, or the reason of a refusal or failure"""
    refused: bool
    target: str
    text: str
    """the question; empty unless the service keeps it"""


def shown_event(event: Mapping[str, Any]) -> ShownEvent:
    """Return an audit event as a table shows it.

    Args:
        event: members of a line, of whatever version wrote it.
    """
    named = " of ".join(str(event[name]) for name in ("user_id", "org_id") if event[name])
    token = f"Token {event['token_id']}" if event["token_id"] else ""
    here = "This machine" if event["operator"] else event["address"] or "Nobody known"
    counts = [counted(event[f"{name}s"], name) for name in ("document", "chunk") if event[f"{name}s"] is not None]
    if event["top_score"] is not None:
        counts.append(f"best match {event['top_score']:.0%}")
    return ShownEvent(
        at=_moment(event["time"]),
        event=str(event["event"]),
        caller=str(named or token or here),
        namespace=str(event["namespace"] or ""),
        outcome=str(event["reason"] or ", ".join(counts)),
        refused=event["reason"] is not None,
        target=str(event["target"] or ""),
        text=str(event["text"] or ""),
    )


def _moment(value: object) -> datetime:
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting with its value."""

    name: str
    value: str
    """as JSON; secrets are masked"""
    changed: bool
    """True if it is not the default"""
    description: str


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section of the settings file."""

    name: str
    """`[corpus]`, or `[[source]] handbook`"""
    settings: tuple[ShownSetting, ...]

    @property
    def changed(self) -> int:
        """Number of settings that are not the default."""
        return sum(each.changed for each in self.settings)


def shown_settings(settings: Settings) -> list[ShownSection]:
    """Return all settings that a service runs with, section by section; secrets are masked."""
    found: list[ShownSection] = []
    for name in type(settings).model_fields:
        section = getattr(settings, name)
        if isinstance(section, BaseModel):
            found.append(ShownSection(f"[{name}]", tuple(_shown(section))))
            continue
        for number, each in enumerate(section, 1):
            found.append(ShownSection(f"[[{name}]] {getattr(each, 'name', number)}", tuple(_shown(each))))
    return found


def _shown(section: BaseModel) -> Iterator[ShownSetting]:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        default = field.get_default(call_default_factory=True, validated_data={})
        yield ShownSetting(name, _value(value), value != default, (field.description or "").split("\n")[0])


def _value(value: Any) -> str:
    if value is None:
        return ""
    # A key may have been written where none belongs.
    return masked(json.dumps(_plain(value), ensure_ascii=False, default=str))[:_LONGEST_VALUE]


def _plain(value: Any) -> Any:
    """Return a value as JSON knows it, with a mask in the place of each secret."""
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [_plain(each) for each in value]
    return value
