"""A place with documents that a test changes without the source's knowledge, for any kind of place."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType

import pytest

from parquetry.model import Access
from parquetry.sources.base import Place, Source
from parquetry.sources.providers import open_place
from tests.servers.cutting_proxy import CuttingProxy

ACCESS = Access("individual", user_id="ada", tags=("x",))
_ENOUGH = 150
"""bytes of a response: its head, and the beginning of a listing"""


def opened(uri: str, **options: object) -> Source:
    return open_place(Place(name="shelf", uri=uri, access=ACCESS, options=options))


class Shelf:
    """A new, empty place.

    Args:
        environment: for variables that last as long as the test.
        stack: closes what has to be stopped after the test.
    """

    root = ""
    """URL"""
    refused: frozenset[str] = frozenset()
    """hostile names that no document can have in this kind of place"""
    options: Mapping[str, object] = MappingProxyType({})
    """options of the source"""

    def __init__(self, environment: pytest.MonkeyPatch, stack: ExitStack) -> None:
        self._environment, self._stack = environment, stack

    def put(self, path: str, content: bytes) -> None:
        raise NotImplementedError

    def delete(self, path: str) -> None:
        raise NotImplementedError

    def source(self) -> Source:
        return opened(self.root, **self.options)

    def missing(self) -> Source:
        """Return a source for a place that does not exist."""
        raise NotImplementedError

    def denied(self) -> Source:
        """Return a source for the place, without permission to list it."""
        raise NotImplementedError

    def halting(self) -> Source:
        """Return a source with documents of which some cannot be listed."""
        raise NotImplementedError

    def set_environment(self, variables: Mapping[str, str]) -> None:
        for name, value in variables.items():
            self._environment.setenv(name, value)

    def cut(self, port: int) -> int:
        """Return the port of a relay that truncates the responses of a local server."""
        proxy = self._stack.enter_context(CuttingProxy(port))
        proxy.allowed = _ENOUGH
        return proxy.port
