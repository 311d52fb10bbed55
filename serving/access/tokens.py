"""Tokens of callers: created, listed, revoked, and found on each request."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from parquetry.errors import SettingsError
from parquetry.serving.access.last_used import LastUsed
from parquetry.serving.access.principals import DEFAULT_NAMESPACE, RIGHTS, Principal, Right
from parquetry.serving.access.token_checks import check_namespaces, check_rights, checked_name
from parquetry.serving.access.token_table import TokenTable
from parquetry.serving.access.token_text import SHOWN, TOKEN_PREFIX, digest_of, is_token, new_token, shown

State = Literal["active", "expired", "revoked"]
Invalid = Literal["malformed", "unknown", "expired", "revoked"]
"""reasons for which a token is not accepted"""
_ID = 12
"""characters of an id: the beginning of the digest in hexadecimal"""
_COLUMNS = (
    "id, shown, name, user_id, org_id, namespaces, default_namespace, rights, created_at, expires_at, last_used_at, "
    "revoked_at"
)
_CHECKED = "digest, id, user_id, org_id, namespaces, default_namespace, rights, expires_at, last_used_at, revoked_at"


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept: everything but its secret."""

    id: str
    """beginning of the digest, in hexadecimal"""
    shown: str
    """beginning of the token, enough to recognise it"""
    name: str
    """label for people"""
    user_id: str | None
    org_id: str | None
    namespaces: tuple[str, ...] | None
    """None for all"""
    default_namespace: str | None
    rights: tuple[Right, ...]
    """in the order of `RIGHTS`"""
    created_at: datetime
    """UTC"""
    expires_at: datetime | None
    """UTC; None if it never expires"""
    last_used_at: datetime | None
    """UTC, to about a minute; None if it was never used"""
    revoked_at: datetime | None
    """UTC; None if it was not revoked"""

    def state(self, now: datetime) -> State:
        """Return the state of the token at a time."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


class TokenStore:
    """The tokens of a service, in `tokens.db` of its state folder. Thread-safe; any number of processes.

    Every check reads the file, so a token that another process revokes is refused by the next request.

    Args:
        state: state folder of the service.
        now: clock, in seconds since the epoch.

    Raises:
        StorageError: the file cannot be opened.
    """

    def __init__(self, state: Path, now: Callable[[], float] = time.time) -> None:
        self._table = TokenTable(state)
        self._now = now
        self._last_used = LastUsed(state)

    def __enter__(self) -> TokenStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write the last uses and close the file."""
        self._last_used.close()
        self._table.close()

    def create(
        self,
        name: str,
        *,
        user_id: str | None = None,
        org_id: str | None = None,
        namespaces: Sequence[str] | None = None,
        default_namespace: str | None = None,
        rights: Sequence[str] = ("search", "read"),
        expires_at: datetime | None = None,
    ) -> tuple[Token, str]:
        """Create a token.

        Args:
            name: label for people.
            user_id: user whose documents the bearer sees and owns; None for none.
            org_id: organization of the bearer; None for none.
            namespaces: namespaces that exist for the bearer; None for all.
            default_namespace: namespace of requests that name none; by default `default` if it is among
                `namespaces`, else the first of them.
            rights: some of `RIGHTS`.
            expires_at: end of its validity, with a time zone; None for no end.

        Returns:
            The token as it is kept, and the token itself, which is kept nowhere.

        Raises:
            SettingsError: a value is empty, contradictory or unknown.
            StorageError: the file cannot be written.
        """
        now = int(self._now())
        if expires_at is not None and int(expires_at.timestamp()) <= now:
            raise SettingsError(f"expiry {expires_at.isoformat()} is in the past")
        namespaces = None if namespaces is None else check_namespaces(namespaces)
        plain = new_token()
        row = (
            digest_of(plain).hex()[:_ID],
            shown(plain),
            checked_name("name", name),
            None if user_id is None else checked_name("user", user_id),
            None if org_id is None else checked_name("organization", org_id),
            None if namespaces is None else json.dumps(namespaces),
            _default_namespace(namespaces, default_namespace),
            " ".join(check_rights(rights)),
            now,
            # Rounded down: never valid for longer than was asked.
            None if expires_at is None else int(expires_at.timestamp()),
            None,
            None,
        )
        with self._table.writing() as connection:
            connection.execute(
                f"INSERT INTO tokens (digest, {_COLUMNS}) VALUES (?, {', '.join('?' * len(row))})",
                (digest_of(plain), *row),
            )
        return _token(row), plain

    def list(self) -> list[Token]:
        """Return all tokens, also expired and revoked ones, oldest first."""
        return [_token(row) for row in self._table.all(f"SELECT {_COLUMNS} FROM tokens ORDER BY created_at, rowid")]

    def revoke(self, which: str) -> Token:
        """Revoke a token: the next request with it is refused. Revoking it again changes nothing.

        Args:
            which: its id, the beginning of the token as `list` shows it, or the token itself.

        Raises:
            SettingsError: no token matches, or several do.
            StorageError: the file cannot be written.
        """
        condition, value = _matching(which)
        with self._table.writing() as connection:
            found = connection.execute(f"SELECT id FROM tokens WHERE {condition}", (value,)).fetchall()
            if len(found) != 1:
                raise _unknown(which, len(found))
            connection.execute(
                "UPDATE tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?", (int(self._now()), found[0][0])
            )
            row = connection.execute(f"SELECT {_COLUMNS} FROM tokens WHERE id = ?", found[0]).fetchone()
        return _token(row)

    def forget(self, user_id: str) -> int:
        """Delete all tokens of a user; return their number."""
        with self._table.writing() as connection:
            return connection.execute("DELETE FROM tokens WHERE user_id = ?", (user_id,)).rowcount

    def find(self, plain: str) -> Principal | None:
        """Return the bearer of a token; None if the token is not valid now.

        Raises:
            StorageError: the tokens cannot be read.
        """
        found = self.check(plain)
        return found if isinstance(found, Principal) else None

    def check(self, plain: str) -> Principal | Invalid:
        """Return the bearer of a token, or the reason for which it is not accepted.

        Raises:
            StorageError: the tokens cannot be read.
        """
        if not is_token(plain):
            return "malformed"
        digest = digest_of(plain)
        row = self._table.one(f"SELECT {_CHECKED} FROM tokens WHERE digest = ?", digest)
        if row is None or not secrets.compare_digest(row[0], digest):
            return "unknown"
        return self._checked(row)

    def bearer_of(self, token_id: str) -> Principal | Invalid:
        """Return the bearer of a token that was presented before, or the reason for which it is not accepted any more.

        Args:
            token_id: id of the token.

        Raises:
            StorageError: the tokens cannot be read.
        """
        row = self._table.one(f"SELECT {_CHECKED} FROM tokens WHERE id = ?", token_id)
        return "unknown" if row is None else self._checked(row)

    def _checked(self, row: Sequence[Any]) -> Principal | Invalid:
        _, token_id, *values, expires_at, last_used_at, revoked_at = row
        now = self._now()
        if revoked_at is not None:
            return "revoked"
        if (expired := _expired(expires_at, now)) is not None:
            return expired
        self._last_used.note(token_id, int(now), last_used_at)
        return _principal(token_id, *values)

    def check_again(self, token_id: str) -> Invalid | None:
        """Return the reason for which a token that was accepted before is not accepted any more; None if it is.

        Args:
            token_id: id of the token.

        Raises:
            StorageError: the tokens cannot be read.
        """
        row = self._table.one("SELECT expires_at, revoked_at FROM tokens WHERE id = ?", token_id)
        if row is None:
            return "unknown"
        expires_at, revoked_at = row
        return "revoked" if revoked_at is not None else _expired(expires_at, self._now())


def _expired(expires_at: int | None, now: float) -> Literal["expired"] | None:
    return "expired" if expires_at is not None and expires_at <= now else None


def _default_namespace(namespaces: Sequence[str] | None, default: str | None) -> str | None:
    if default is None:
        return None if namespaces is None else DEFAULT_NAMESPACE if DEFAULT_NAMESPACE in namespaces else namespaces[0]
    check_namespaces([default])
    if namespaces is not None and default not in namespaces:
        raise SettingsError(f"default namespace {default!r} is not among the token's namespaces")
    return default


def _matching(which: str) -> tuple[str, Any]:
    """Return a condition, and its value, for a token named by an id, its beginning, or the token itself."""
    if is_token(which):
        return "digest = ?", digest_of(which)
    if which.startswith(TOKEN_PREFIX) and len(which) == len(TOKEN_PREFIX) + SHOWN:
        return "shown = ?", which
    return "id = ?", which


def _unknown(which: str, found: int) -> SettingsError:
    named = shown(which) if which.startswith(TOKEN_PREFIX) else which
    if found:
        return SettingsError(
            f"several tokens ({found}) begin with {named!r}; name one by its id, as `parquetry token list` shows"
        )
    return SettingsError(f"no token {named!r}; `parquetry token list --all` shows their ids")


def _token(row: Sequence[Any]) -> Token:
    token_id, start, name, user, org, namespaces, default, rights, created, *times = row
    expires, used, revoked = (None if each is None else _time(each) for each in times)
    of_token = tuple(each for each in RIGHTS if each in rights.split())
    return Token(
        token_id, start, name, user, org, _names(namespaces), default, of_token, _time(created), expires, used, revoked
    )


@lru_cache(maxsize=4096)
def _principal(
    token_id: str, user: str | None, org: str | None, namespaces: str | None, default: str | None, rights: str
) -> Principal:
    known = frozenset(each for each in RIGHTS if each in rights.split())
    return Principal(token_id, user, org, _names(namespaces), known, default)


def _names(stored: str | None) -> tuple[str, ...] | None:
    return None if stored is None else tuple(json.loads(stored))


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
