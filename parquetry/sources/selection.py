"""Which of a source's documents the settings want: gitignore-style globs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pathspec

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
"""What a place holds that nobody means as a document: hidden files and folders, version control, caches, virtual
environments, lock and backup files of editors, litter of operating systems."""
DEFAULT_EXCLUDES = (*PAGE_EXCLUDES, "build/", "dist/")
"""The same of files, where a program's own output is a copy of what stands elsewhere; of pages it is the original."""


class Selection:
    """Include and exclude globs.

    Args:
        include: gitignore-style globs; empty for everything.
        exclude: gitignore-style globs, besides `defaults`; `!glob` takes one of those back.
        defaults: what nobody means as a document.
    """

    def __init__(
        self, include: Sequence[str] = (), exclude: Sequence[str] = (), defaults: Sequence[str] = DEFAULT_EXCLUDES
    ) -> None:
        self._include = pathspec.GitIgnoreSpec.from_lines(include) if include else None
        self._exclude = pathspec.GitIgnoreSpec.from_lines([*defaults, *exclude])

    def enters(self, folder: str) -> bool:
        """Whether a folder may hold anything that is wanted."""
        return not self._exclude.match_file(typed(folder) + "/")

    def wants(self, path: str) -> bool:
        """Whether a document is wanted, if its folders are entered."""
        path = typed(path)
        return not self._exclude.match_file(path) and (self._include is None or self._include.match_file(path))

    def leaves_out(self, path: str, *, folder: bool = False) -> bool:
        """Whether a listing of the whole source passes over this path."""
        parts = path.split("/")
        parents = ["/".join(parts[:depth]) for depth in range(1, len(parts) + folder)]
        return not all(map(self.enters, parents)) or not (folder or self.wants(path))


class SelectedSource:
    """A source of which only what the settings want is listed; for places that cannot leave out whole folders."""

    def __init__(self, source: Source, selection: Selection) -> None:
        self._source, self._selection = source, selection
        self.fetch = source.fetch

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        """As `Source.scan`."""
        for found in self._source.scan(prefix):
            if not found.path or not self._selection.leaves_out(found.path, folder=isinstance(found, Unlisted)):
                yield found
