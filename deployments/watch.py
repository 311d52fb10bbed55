"""Monitoring of a Prefect API: prints a line when something fails silently, and another when it is resolved."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from parquetry.errors import first_line

Look = Callable[[], Iterable["Trouble"]]
"""returns the current troubles"""
_STOP_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Trouble:
    """Problem with the server or a schedule."""

    key: str
    """identity of the trouble across checks"""
    line: str
    """the problem, and where to look"""
    over: str
    """message once it is resolved"""
    patience: float = 0
    """minimum duration in seconds before it is reported"""


@dataclass
class Watch:
    """Reporter of each trouble, once when it appears and once when it is resolved.

    Args:
        looks: checks, each returning all of its troubles.
        say: prints a line.
        clock: monotonic clock in seconds.
    """

    looks: Sequence[Look]
    say: Callable[[str], None]
    clock: Callable[[], float] = monotonic
    _since: dict[str, float] = field(default_factory=dict)
    """key -> time the trouble was first seen"""
    _said: dict[str, Trouble] = field(default_factory=dict)
    _broken: str = ""
    """error of the last check, as reported"""

    def look_on(self) -> None:
        """Run one check; report an error of the check itself, and continue."""
        try:
            self.look()
        except Exception as error:  # noqa: BLE001 - a watch that ended silently would be the silence that it is to end
            broken = f"the server is not watched: {type(error).__name__}: {first_line(error)}"
            if broken != self._broken:
                self._broken = broken
                self.say(broken)
        else:
            if self._broken:
                self._broken = ""
                self.say("the server is watched again")

    def look(self) -> None:
        """Run one check."""
        now = self.clock()
        found = {trouble.key: trouble for look in self.looks for trouble in look()}
        self._since = {key: self._since.get(key, now) for key in found}
        for key, trouble in found.items():
            if key not in self._said and now - self._since[key] >= trouble.patience:
                self._said[key] = trouble
                self.say(trouble.line)
        for key in [key for key in self._said if key not in found]:
            self.say(self._said.pop(key).over)


@contextmanager
def watching(watch: Watch, seconds: float) -> Iterator[None]:
    """Run checks every `seconds` in a thread while the block runs."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(seconds):
            watch.look_on()

    thread = threading.Thread(target=work, name="server-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_STOP_SECONDS)
