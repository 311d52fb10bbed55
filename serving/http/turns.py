"""Turns of searches: a few compute at a time, and the others wait in the order in which they came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from parquetry.embed.registry import calls_service
from parquetry.settings.sections import Settings

Values = Mapping[str, Any]
"""arguments of an endpoint, by name"""
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
SEARCHES = 4
"""searches that compute at a time in one process. Of a search of a small corpus nearly all is Python, of which one
thread runs at a time: forty threads take a quarter longer for the same searches, and some of them wait twice as long as
others. Of a large corpus half is not, which several processors share"""
LONG_SEARCHES = 2
"""requests of many searches that compute at a time, beside the others, which need not wait for them"""
# Of each event loop: a limiter wakes who waits within its own loop only.
_TURNS: RunVar[tuple[CapacityLimiter, CapacityLimiter]] = RunVar("turns of searches")
_KIND = "__kind_of_search__"


@dataclass(frozen=True, slots=True)
class SearchKind:
    """Functions of an endpoint's arguments that tell what kind of search they ask for."""

    waits: Callable[[Values], bool]
    """True if a reranker or a language model takes part, which may be those of another service"""
    long: Callable[[Values], bool]
    """True if it takes many times as long as one search"""

    def limiter(self, values: Values) -> CapacityLimiter | None:
        """Return what a search waits for.

        None for one that may wait for another service: in a turn, the next ones would wait for that service, too.
        """
        if self.waits(values) or _embeds_elsewhere(values["parts"].settings):
            return None
        turns, long_turns = _limiters()
        return long_turns if self.long(values) else turns


def takes_turns(
    *, waits: Callable[[Values], bool] = lambda _: False, long: Callable[[Values], bool] = lambda _: False
) -> Callable[[Endpoint], Endpoint]:
    """Mark an endpoint of a `JsonRoute` that searches; arguments as for `SearchKind`."""

    def mark(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _KIND, SearchKind(waits, long))
        return endpoint

    return mark


def kind_of(endpoint: Callable[..., Any]) -> SearchKind | None:
    """Return what an endpoint was marked with; None for one that takes no turns."""
    found: SearchKind | None = getattr(endpoint, _KIND, None)
    return found


def _limiters() -> tuple[CapacityLimiter, CapacityLimiter]:
    try:
        return _TURNS.get()
    except LookupError:
        made = CapacityLimiter(SEARCHES), CapacityLimiter(LONG_SEARCHES)
        _TURNS.set(made)
        return made


def _embeds_elsewhere(settings: Settings) -> bool:
    return any(calls_service(name) for name in settings.embedders)
