"""Selection of a source's documents by gitignore-style globs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pathspec

from parquetry.freed_memory import Relievable
from parquetry.model import Item, Unlisted
from parquetry.sources.base import Source
from parquetry.sources.names import typed

PAGE_EXCLUDES = (
    ".*",
    "__pycache__/",
    "node_modules/",
    "venv/",
    "*.egg-info/",
    "Thumbs.db",
    "desktop.ini",
    "~$*",
    "*~",
    "*.swp",
    "*.tmp",
    "*.part",
    "*.crdownload",
)
"""Default excludes for pages: hidden files and folders, version control, caches, virtual environments, lock and
backup files of editors, files of the operating system."""
DEFAULT_EXCLUDES = (*PAGE_EXCLUDES, "build/", "dist/")
"""Default excludes for files. Build output copies other files; a page below `build/` or `dist/` is an original."""


class Selection:
    """Include and exclude globs.

    Args:
        include: gitignore-style globs; empty includes everything.
        exclude: gitignore-style globs in addition to `defaults`; `!glob` cancels a default.
        defaults: globs excluded by default.
    """

    def __init__(
        self, include: Sequence[str] = (), exclude: Sequence[str] = (), defaults: Sequence[str] = DEFAULT_EXCLUDES
    ) -> None:
        self._include = pathspec.GitIgnoreSpec.from_lines(include) if include else None
        self._exclude = pathspec.GitIgnoreSpec.from_lines([*defaults, *exclude])

    def enters(self, folder: str) -> bool:
        """Return True if a folder may contain selected documents."""
        return not self._exclude.match_file(typed(folder) + "/")

    def wants(self, path: str) -> bool:
        """Return True if a document is selected, provided that its folders are entered."""
        path = typed(path)
        return not self._exclude.match_file(path) and (self._include is None or self._include.match_file(path))

    def leaves_out(self, path: str, *, folder: bool = False) -> bool:
        """Return True if a listing of the whole source omits this path."""
        parts = path.split("/")
        parents = ["/".join(parts[:depth]) for depth in range(1, len(parts) + folder)]
        return not all(map(self.enters, parents)) or not (folder or self.wants(path))


class SelectedSource:
    """Source filtered by its globs, for places where a listing cannot skip whole folders."""

    def __init__(self, source: Source, selection: Selection) -> None:
        self._source, self._selection = source, selection
        self.fetch = source.fetch
        if isinstance(source, Relievable):
            self.give_memory_back = source.give_memory_back

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        """List as `Source.scan` describes."""
        for found in self._source.scan(prefix):
            if not found.path or not self._selection.leaves_out(found.path, folder=isinstance(found, Unlisted)):
                yield found
