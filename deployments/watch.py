"""Watching a Prefect API that is served from: what fails silently there is one line, and one when it is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from parquetry.errors import first_line

Look = Callable[[], Iterable["Trouble"]]
"""gives what is wrong now"""
_STOP_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong with the server or a schedule."""

    key: str
    """the same for as long as it is the same trouble"""
    line: str
    """what is wrong, and where to look"""
    over: str
    """said when it is gone"""
    patience: float = 0
    """seconds that it has to last before it is worth a line"""


@dataclass
class Watch:
    """Says each trouble once, and once more when it is over.

    Args:
        looks: each is asked for all of its troubles.
        say: prints a line.
        clock: seconds, from any start.
    """

    looks: Sequence[Look]
    say: Callable[[str], None]
    clock: Callable[[], float] = monotonic
    _since: dict[str, float] = field(default_factory=dict)
    """key -> when the trouble was first seen"""
    _said: dict[str, Trouble] = field(default_factory=dict)
    _broken: str = ""
    """why the last look failed, as it was said"""

    def look_on(self) -> None:
        """Look once; what goes wrong with looking itself is said, too, and the next look is tried."""
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
        """Look once."""
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
    """Look every so many seconds while the block runs, in a thread."""
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
