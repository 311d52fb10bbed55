"""A disk that loses power: records a program's changes to a folder and gives the states that a power cut may leave.

Only synced data is certainly on disk: the content of a file as of the last sync of the file, and the names in a folder
as of the last sync of the folder. Each later change may have reached the disk or not, and content may have reached it
in part. Folders and files are recorded at each call by which Python changes a name or syncs, so that writes by
libraries in between count as written and not as synced.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

from tests.series import part_of

IGNORED = frozenset({"staging"})
"""folders that no reader opens"""
SPARE = ".copy"
"""suffix of files that are never synced, because any state of them is equally good: they share one fate, which differs
from state to state of the rest"""
MOST_FREE = 5
"""unsynced changes of which all combinations are tried; beyond that, each is kept alone and lost alone"""

State = Mapping[str, bytes | None]
"""path -> content of a file, None for a folder"""


@dataclass(frozen=True)
class _Node:
    """A name in a folder."""

    inode: int
    content: bytes | None
    """present content; None for a folder"""


@dataclass
class Moment:
    """The interval between two calls."""

    states: list[State]
    """states that were not possible at an earlier moment with as many reported publishes"""
    told: int
    """number of publishes that the program had reported by then"""
    call: str


@dataclass
class Disk:
    """The durable content of a disk, and the changes recorded so far."""

    root: Path
    moments: list[Moment] = field(default_factory=list)
    told: int = 0
    _contents: dict[int, bytes] = field(default_factory=dict)
    """inode -> content that is on disk"""
    _names: dict[int, dict[str, int]] = field(default_factory=dict)
    """inode of a folder -> name -> inode, as they are on disk"""
    _folders: set[int] = field(default_factory=set)
    _seen: dict[tuple[int, int, int], bytes] = field(default_factory=dict)
    _states: set[tuple[str, int]] = field(default_factory=set)

    def begin(self) -> None:
        """Treat the present content as synced."""
        for path in [self.root, *self.root.rglob("*")]:
            self._synced(path)

    def tell(self) -> None:
        """Record that the program reported a publish; from now on it has to survive."""
        self.told += 1
        self.note("told", None)

    def _read(self, path: Path) -> bytes:
        found = path.stat()
        key = (found.st_ino, found.st_mtime_ns, found.st_size)
        if key not in self._seen:
            self._seen[key] = path.read_bytes()
        return self._seen[key]

    def _synced(self, path: Path) -> None:
        inode = path.stat().st_ino
        if path.is_dir():
            self._folders.add(inode)
            self._names[inode] = {each.name: each.stat().st_ino for each in path.iterdir()}
        else:
            # Two writes within one clock tick leave the same modification time.
            self._contents[inode] = path.read_bytes()

    def note(self, call: str, synced: Path | None) -> None:
        """Record a change below the root."""
        if synced is not None and synced.exists():
            self._synced(synced)
        states = []
        for state in self._possible():
            rest = digest(state)
            if (rest, self.told) not in self._states:
                self._states.add((rest, self.told))
                states.append({**state, **dict(self._spare(state, rest))})
        self.moments.append(Moment(states, self.told, call))

    def _possible(self) -> Iterator[State]:
        """Return the states that a power cut may leave now."""
        free = list(dict.fromkeys(self._choices(self.root, "")))
        every = [(key, choice) for key, choices in free for choice in choices]
        if len(free) <= MOST_FREE:
            picks = [dict(zip([key for key, _ in free], pick, strict=True)) for pick in product(*(c for _, c in free))]
        else:
            last = {key: choices[-1] for key, choices in free}
            first = {key: choices[0] for key, choices in free}
            picks = [first, last]
            picks += [{**first, key: choice} for key, choice in every] + [
                {**last, key: choice} for key, choice in every
            ]
        for pick in picks:
            yield dict(self._left(self.root, self.root.stat().st_ino, "", pick))

    def _spare(self, state: State, rest: str) -> Iterator[tuple[str, bytes]]:
        """Yield the surviving files among those that are never synced, in the surviving folders."""
        fate = int(rest, 16) % 4
        for path in self.root.rglob(f"*{SPARE}") if fate else ():
            where = path.relative_to(self.root)
            if str(where.parent) in state and where.parts[0] not in IGNORED:
                content = self._read(path)
                yield str(where), (b"", content[: len(content) // 2], content)[fate - 1]

    def _choices(self, folder: Path, at: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield path -> its possible contents; the first assumes that nothing since the last sync reached the disk."""
        inode = folder.stat().st_ino
        known = self._names.get(inode, {})
        present = {each.name: each for each in folder.iterdir()}
        for name in _kept({*known, *present}):
            path = f"{at}{name}"
            now = present.get(name)
            if now is None:
                yield path, ("old", "gone")
            elif known.get(name) != now.stat().st_ino:
                yield path, ("old", "new") if name in known else ("gone", "new")
            if now is not None and now.is_dir():
                yield from self._choices(now, f"{path}/")
            elif now is not None and self._contents.get(now.stat().st_ino) != self._read(now):
                yield f"{path}#", ("empty", "half", "whole")

    def _left(self, folder: Path, inode: int, at: str, pick: Mapping[str, str]) -> Iterator[tuple[str, bytes | None]]:
        known = self._names.get(inode, {})
        present = {each.name: each for each in folder.iterdir()} if folder.is_dir() else {}
        for name in _kept({*known, *present}):
            path = f"{at}{name}"
            now = present.get(name)
            fate = pick.get(path, "new" if now is not None else "gone")
            if fate == "gone":
                continue
            if fate == "old":
                held = known[name]
                if held in self._folders:
                    yield path, None
                    yield from self._left(Path(os.devnull), held, f"{path}/", pick)
                else:
                    yield path, self._contents.get(held, b"")
            elif now is not None and now.is_dir():
                yield path, None
                yield from self._left(now, now.stat().st_ino, f"{path}/", pick)
            elif now is not None:
                content = self._read(now)
                synced = self._contents.get(now.stat().st_ino, b"")
                how = pick.get(f"{path}#", "whole")
                yield path, {"empty": synced, "half": content[: len(content) // 2], "whole": content}[how]


def _kept(names: set[str]) -> list[str]:
    return sorted(name for name in names - IGNORED if not name.endswith(SPARE))


@contextmanager
def recorded(root: Path) -> Iterator[Disk]:
    """Record this process's changes to a folder."""
    disk = Disk(root.resolve())
    disk.begin()

    def below(path: Any) -> Path | None:
        found = Path(os.fsdecode(path)).absolute()
        return found if found == disk.root or disk.root in found.parents else None

    def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            result = real(*arguments, **options)
            paths = [below(each) for each in arguments if isinstance(each, str | bytes | os.PathLike)]
            if any(paths):
                disk.note(f"{name} {' '.join(str(each.relative_to(disk.root)) for each in paths if each)}", None)
            return result

        return call

    fsync = os.fsync

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        path = below(Path(f"/proc/self/fd/{descriptor}").readlink())
        if path is not None:
            disk.note(f"sync {path.relative_to(disk.root)}", path)

    names = ("link", "rename", "replace", "unlink", "remove", "mkdir", "rmdir")
    with mock.patch.multiple(os, fsync=synced, **{name: watched(name, getattr(os, name)) for name in names}):
        yield disk


def lay(state: State, root: Path) -> None:
    """Make a folder hold the state that a power cut left."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for path, content in sorted(state.items()):
        if content is None:
            (root / path).mkdir(parents=True, exist_ok=True)
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)


STATES = 40
"""states of a series that a run looks at"""


def survived(disk: Disk, truths: Sequence[Any], left: Path, held: Callable[[State], Any]) -> int:
    """Look at states that power cuts may have left; return the number of all such states.

    Args:
        disk: recorded changes.
        truths: content before the first reported change, after it, and so on.
        left: folder to lay the states out in.
        held: returns the content of the state that is laid out there.
    """
    seen: dict[str, Any] = {}
    states = dict.fromkeys(digest(state) for moment in disk.moments for state in moment.states)
    looked_at = set(part_of(list(states), STATES))
    for moment in disk.moments:
        for state in moment.states:
            key = digest(state)
            if key not in looked_at:
                continue
            try:
                if key not in seen:
                    lay(state, left)
                    seen[key] = held(state)
                # What was reported is there; the next change may be there already.
                assert seen[key] in truths[moment.told : moment.told + 2]
            except BaseException as error:
                error.add_note(f"power was lost after: {moment.call}; {moment.told} told of by then")
                raise
    _digest_of.cache_clear()
    return len(states)


def digest(state: State) -> str:
    """Return a digest that identifies a state."""
    parts = [(path, content and _digest_of(content)) for path, content in sorted(state.items())]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@lru_cache(maxsize=256)
def _digest_of(content: bytes) -> bytes:
    """Return the digest of a file: thousands of states share most of their files."""
    return hashlib.sha256(content).digest()
