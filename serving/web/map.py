"""The map of a corpus: points for a canvas, and the same documents as lists for everyone else."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from parquetry.serving.web.documents import kind_of
from parquetry.storage.analysis.lists import PlacedDocuments

MOST_POINTS = 200_000
"""documents that are drawn"""
MOST_LISTED = 200
"""documents of an area or a cluster that are listed"""
_MOST_NAMES = 250
"""sources or types that have a name in the legend; further ones are `Others`"""
_SCALE = 65_535
_NAMED_BY = 3
"""words that name a cluster"""
Numbers = np.ndarray[tuple[int], np.dtype[Any]]
_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON = frozenset({"with", "from", "this", "that", "your", "untitled", "html", "docx", "pptx", "xlsx", "json"})


def points_of(found: PlacedDocuments, version: int) -> bytes:
    """Return the points of a map: the length of a head (uint32), the head in JSON, and a column after the other.

    The columns are x and y (of 65,535), source and type (places in the lists of names) and cluster, all uint16, and the
    ids of the documents, 16 bytes each. Numbers are little-endian.

    Args:
        found: the documents.
        version: version of the corpus that was analyzed.
    """
    count = min(len(found.ids), MOST_POINTS)
    sources, of_source = _most_frequent([str(each) for each in found.source.values], found.source.numbers[:count])
    kinds = [kind_of(each) for each in found.media_type.values]
    types, of_type = _most_frequent(kinds, found.media_type.numbers[:count])
    head = {
        "version": version,
        "count": count,
        "left_out": len(found.ids) - count,
        "sources": sources,
        "types": types,
    }
    told = json.dumps(head).encode()
    told += b" " * (-len(told) % 4)
    places = (np.round(np.clip(each[:count], 0, 1) * _SCALE) for each in (found.x, found.y))
    columns = [*places, of_source, of_type, found.cluster[:count]]
    numbers = b"".join(np.asarray(each).astype("<u2").tobytes() for each in columns)
    return len(told).to_bytes(4, "little") + told + numbers + found.ids[:count].tobytes()


def _most_frequent(names: Sequence[str], numbers: Numbers) -> tuple[list[str], Numbers]:
    """Return the distinct names, the most frequent first, and the place of each row's among them."""
    sizes = Counter[str]()
    for name, size in zip(names, np.bincount(numbers, minlength=len(names)).tolist(), strict=True):
        sizes[name] += size
    ordered = [name for name, size in sizes.most_common() if size]
    places = {name: min(place, _MOST_NAMES) for place, name in enumerate(ordered)}
    shown = ordered[:_MOST_NAMES] + (["Others"] if len(ordered) > _MOST_NAMES else [])
    of_name = np.array([places.get(name, 0) for name in names], np.uint16)
    return shown, of_name[numbers] if len(names) else numbers


def cluster_names(found: Sequence[tuple[int, int, Sequence[str]]]) -> list[tuple[int, int, str]]:
    """Return number, size and name of each cluster: words that its documents' names have more often than others'.

    Args:
        found: number, size and names of documents of each cluster.
    """
    words = [Counter(word for name in names for word in set(_words(name))) for _, _, names in found]
    everywhere = Counter[str]()
    for each in words:
        everywhere.update(each)
    named = []
    for (number, size, _), mine in zip(found, words, strict=True):
        best = sorted(mine, key=lambda word: (-(mine[word] ** 2) / everywhere[word], word))[:_NAMED_BY]
        named.append((number, size, ", ".join(best) or f"Cluster {number + 1}"))
    return named


def _words(name: str) -> list[str]:
    return [word for word in _WORD.findall(name.lower()) if word not in _COMMON]
