"""Sessions of browsers: a cookie names one, and it stands for the token that its visitor signed in with.

The cookie is random and tells nothing of the token. A session ends when its token is revoked or expires, after some
hours, or when its bearer signs out; only a hash of the cookie is kept.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.tokens import Invalid, TokenStore
from parquetry.serving.state.database import StateDatabase

FILE = "sessions.db"
SESSION_SECONDS = 12 * 3600
"""seconds from signing in to the end of a session"""
_SCHEMA = """CREATE TABLE IF NOT EXISTS sessions (
    digest BLOB PRIMARY KEY,
    token_id TEXT NOT NULL,
    expires REAL NOT NULL
) STRICT"""
_VISIT = re.compile(r"[\w-]{43}", re.ASCII)
"""value of the cookie: 256 random bits in base 64"""


def new_visit() -> str:
    """Return a new random value of the cookie."""
    return secrets.token_urlsafe(32)


def visit_of(cookies: Sequence[str], name: str) -> str | None:
    """Return the value of the cookie; None if there is none, or if there are several different ones.

    Args:
        cookies: headers `Cookie`.
        name: name of the cookie.
    """
    pairs = (each.strip().partition("=") for header in cookies for each in header.split(";"))
    found = {value for key, _, value in pairs if key == name and _VISIT.fullmatch(value)}
    return found.pop() if len(found) == 1 else None


class SessionStore:
    """The sessions of a service. Safe to use from several threads and processes.

    Args:
        state: state folder of the service.
        tokens: tokens of the service.
        now: clock, in seconds since the epoch.

    Raises:
        StorageError: the file cannot be opened.
    """

    def __init__(self, state: Path, tokens: TokenStore, now: Callable[[], float] = time.time) -> None:
        self._database = StateDatabase(state, FILE, _SCHEMA, "sessions of browsers")
        self._tokens, self._now = tokens, now

    def begin(self, principal: Principal) -> str:
        """Begin a session of a token's bearer; return the value of its cookie.

        Raises:
            ValueError: the principal has no token.
            StorageError: the file cannot be written.
        """
        if principal.token_id is None:
            raise ValueError("only the bearer of a token signs in")
        visit, now = new_visit(), self._now()
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM sessions WHERE expires <= ?", (now,))
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?)", (_digest(visit), principal.token_id, now + SESSION_SECONDS)
            )
        return visit

    def bearer(self, visit: str) -> Principal | Invalid | None:
        """Return the bearer of a session, the reason for which its token is not accepted any more, or None.

        Args:
            visit: value of the cookie.

        Raises:
            StorageError: the file cannot be read.
        """
        found = self._database.rows(
            "SELECT token_id FROM sessions WHERE digest = ? AND expires > ?", (_digest(visit), self._now())
        )
        return self._tokens.bearer_of(found[0][0]) if found else None

    def end(self, visit: str) -> None:
        """End a session, if there is one.

        Raises:
            StorageError: the file cannot be written.
        """
        self._database.write("DELETE FROM sessions WHERE digest = ?", (_digest(visit),))

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _digest(visit: str) -> bytes:
    return hashlib.sha256(visit.encode()).digest()
