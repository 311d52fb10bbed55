"""Shared parts of remote sources: conversion between names and paths, and errors of client libraries."""

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
"""modification time of documents without one"""
_DENIED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


@dataclass(frozen=True, slots=True)
class Root:
    """Root of a source in a store: converts the store's names to paths within the source and back."""

    uri: str
    """URL without a trailing slash"""
    base: str
    """common prefix of the store's names of all documents: empty, or ending with `/`"""

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
    """Translate a client library's errors during a listing into those of `Source.scan`.

    Args:
        place: the listed place.
        denials: errors that the library raises for invalid credentials, besides those with HTTP status 401 or 403.
    """
    try:
        yield
    except ParquetryError:
        raise
    except Exception as error:
        # The libraries behind fsspec share no base class but Exception, and a listing that any error ends must not look
        # complete.
        if isinstance(error, FileNotFoundError) or _status(error) == HTTPStatus.NOT_FOUND:
            raise SettingsError(f"source {place.name}: {place.uri} does not exist; correct its uri") from error
        if isinstance(error, denials) or _is_denied(error):
            raise SettingsError(
                f"source {place.name}: no permission to list {place.uri} ({first_line(error)}); check the credentials"
            ) from error
        raise TransientError("unlisted", f"listing {place.uri} broke off: {_told(error)}") from error


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Translate a client library's errors during a read into those of `Source.fetch`."""
    try:
        yield
    except ParquetryError:
        raise
    except Exception as error:
        # As above; any error concerns only this document.
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
    """Return the HTTP status of a client library's error, from any of the usual attributes."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int):
                return value
    return None


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
