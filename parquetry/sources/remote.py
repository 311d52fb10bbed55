"""What places behind a network have in common: names that become paths, and errors of foreign libraries."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus

from parquetry.errors import ParquetryError, SettingsError, TransientError, first_line
from parquetry.sources.base import Place
from parquetry.sources.names import native, printable

NO_TIME = datetime.fromtimestamp(0, UTC)
"""for what tells no time of its own"""
_DENIED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


@dataclass(frozen=True, slots=True)
class Root:
    """Where in a store a source begins, and how the store's names become paths within the source and back."""

    uri: str
    """without a slash at its end"""
    base: str
    """what the store's name of every document of the source begins with: empty, or up to and with a `/`"""

    def path(self, name: str) -> str:
        return printable(name.removeprefix(self.base))

    def name(self, path: str) -> str:
        return self.base + native(path)

    def uri_of(self, path: str) -> str:
        return f"{self.uri}/{path}"

    def holds(self, name: str) -> bool:
        return name.startswith(self.base) and len(name) > len(self.base)


@contextmanager
def listing(place: Place, *denials: type[Exception]) -> Iterator[None]:
    """Errors of a foreign library while a source is listed, as `Source.scan` promises them.

    Args:
        place: that is listed.
        denials: what the library raises, besides errors with the HTTP status 401 or 403, if the credentials do not do.
    """
    try:
        yield
    except ParquetryError:
        raise
    except Exception as error:
        # The libraries of fsspec's file systems have nothing in common but that what they raise is an exception, and a
        # listing that ends by any of them must not look whole.
        if isinstance(error, FileNotFoundError) or _status(error) == HTTPStatus.NOT_FOUND:
            raise SettingsError(f"source {place.name}: {place.uri} does not exist; correct its uri") from error
        if isinstance(error, denials) or _is_denied(error):
            raise SettingsError(
                f"source {place.name}: no permission to list {place.uri} ({first_line(error)}); check the credentials"
            ) from error
        raise TransientError("unlisted", f"listing {place.uri} broke off: {_told(error)}") from error


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Errors of a foreign library while a document is read, as `Source.fetch` promises them."""
    try:
        yield
    except ParquetryError:
        raise
    except Exception as error:
        # As above; whatever it is, it concerns this document alone.
        if isinstance(error, FileNotFoundError) or _status(error) == HTTPStatus.NOT_FOUND:
            raise FileNotFoundError(errno.ENOENT, "is not there any more", path) from error
        if _is_denied(error):
            raise PermissionError(errno.EACCES, "no permission to read it", path) from error
        limited = _status(error) == HTTPStatus.TOO_MANY_REQUESTS
        raise TransientError(
            "rate-limited" if limited else "unreachable",
            f"{path} could not be read: {_told(error)}",
            getattr(error, "retry_after", None) or None,
        ) from error


def _is_denied(error: Exception) -> bool:
    return isinstance(error, PermissionError) or _status(error) in _DENIED


def _status(error: Exception) -> int | None:
    """The HTTP status that an error of a client library carries, under whichever name."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int):
                return value
    return None


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
