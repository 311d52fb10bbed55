"""A place with documents in it that a test changes behind the back of the source, whatever its kind."""

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
"""bytes of an answer: its head, and the beginning of a listing"""


def opened(uri: str, **options: object) -> Source:
    return open_place(Place(name="shelf", uri=uri, access=ACCESS, options=options))


class Shelf:
    """A fresh and empty place.

    Args:
        environment: for variables that last as long as the test.
        stack: for what has to be stopped after the test.
    """

    root = ""
    """URL"""
    refused: frozenset[str] = frozenset()
    """hostile names that cannot be given to a document there"""
    options: Mapping[str, object] = MappingProxyType({})
    """of the source"""

    def __init__(self, environment: pytest.MonkeyPatch, stack: ExitStack) -> None:
        self._environment, self._stack = environment, stack

    def put(self, path: str, content: bytes) -> None:
        raise NotImplementedError

    def delete(self, path: str) -> None:
        raise NotImplementedError

    def source(self) -> Source:
        return opened(self.root, **self.options)

    def missing(self) -> Source:
        """A place that does not exist."""
        raise NotImplementedError

    def denied(self) -> Source:
        """The place, for somebody who may not list it."""
        raise NotImplementedError

    def halting(self) -> Source:
        """The place with documents in it, of which some cannot be listed."""
        raise NotImplementedError

    def set_environment(self, variables: Mapping[str, str]) -> None:
        for name, value in variables.items():
            self._environment.setenv(name, value)

    def cut(self, port: int) -> int:
        """The port of a relay to a server on this machine, that cuts its answers short."""
        proxy = self._stack.enter_context(CuttingProxy(port))
        proxy.allowed = _ENOUGH
        return proxy.port
