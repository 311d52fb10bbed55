"""Paths within a source, where an archive is a folder of its members."""

from __future__ import annotations

from collections.abc import Collection, Iterator

SEPARATOR = "!/"
"""separator between an archive and its member, as in `jar:` URLs"""
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".tzst", ".7z")
_MARK = SEPARATOR[0]


def is_archive(path: str) -> bool:
    """Return True if a file of this name is listed as a folder of its members."""
    return path.lower().endswith(SUFFIXES)


def within(path: str, prefix: str) -> bool:
    """Return True if a path equals `prefix` or is below it, members of an archive included (`archive.zip!/member`).

    Everything is within the empty prefix.
    """
    prefix = prefix.rstrip("/")
    if not prefix or path == prefix or path.startswith(prefix + "/"):
        return True
    return path.startswith(prefix + SEPARATOR) and is_archive(prefix)


def covers(path: str, prefix: str, paths: Collection[str]) -> bool:
    """Return True if a path is one of `paths`, or within `prefix` if there are none."""
    return path in paths if paths else within(path, prefix)


def chain(path: str) -> list[str]:
    """Split a path into its archives and the final name: `a.zip!/b.tar!/c.md` -> `a.zip`, `b.tar`, `c.md`."""
    found: list[str] = []
    for step in path.split(SEPARATOR):
        if found and not is_archive(found[-1]):
            found[-1] += SEPARATOR + step
        else:
            found.append(step)
    return found


def ways(path: str) -> Iterator[str]:
    """Yield every ancestor of a path, the outermost first, then the path itself."""
    end = path.find("/")
    while end >= 0:
        above = path[:end]
        inside = above.removesuffix(_MARK)
        yield inside if is_archive(inside) else above
        end = path.find("/", end + 1)
    yield path
