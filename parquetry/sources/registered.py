"""Providers of sources that installed packages register as entry points.

Reading what all packages register takes 20 ms in an environment of 340, and most have nothing for us: whether one
mentions our group is found by its text, in 3 ms.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

ENTRY_POINTS = "parquetry.sources"
"""entry-point group for further providers: URL scheme -> provider"""
_ABOUT = (".dist-info", ".egg-info")
"""ends of the names of folders with the metadata of a package"""


def registered(kind: str) -> EntryPoints:
    """Return the entry points of installed packages for a kind of place."""
    return _registered((*sys.path,)).select(name=kind)


@lru_cache(maxsize=1)
def _registered(path: tuple[str, ...]) -> EntryPoints:
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions") and finder is not PathFinder]
    return entry_points(group=ENTRY_POINTS) if finders or any(map(_may_register, path)) else EntryPoints(())


def _may_register(place: str) -> bool:
    """Return False if no package in a folder of `sys.path` registers a provider; True if that is not certain."""
    try:
        with os.scandir(place or ".") as entries:
            names = [entry.name for entry in entries]
    except FileNotFoundError:
        return False
    except OSError:
        # An archive.
        return True
    if any(name.endswith(".egg") for name in names):
        return True
    return any(_mentions(Path(place, name, "entry_points.txt")) for name in names if name.endswith(_ABOUT))


def _mentions(file: Path) -> bool:
    try:
        return ENTRY_POINTS.encode() in file.read_bytes()
    except OSError:
        return False
