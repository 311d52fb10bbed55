"""The map of a corpus: points for a canvas, and the same documents as lists for everyone else."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np

from parquetry.serving.web.documents import kind_of

MOST_POINTS = 200_000
"""documents that are drawn"""
MOST_LISTED = 200
"""documents of an area or a cluster that are listed"""
_MOST_NAMES = 250
"""sources or types that have a name in the legend; further ones are `Others`"""
_SCALE = 65_535
_NAMED_BY = 3
"""words that name a cluster"""
_MOST_TITLES = 5_000
"""names of documents that the words of a cluster are taken from"""
_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON = frozenset({"with", "from", "this", "that", "your", "untitled", "html", "docx", "pptx", "xlsx", "json"})


def points_of(found: Mapping[str, np.ndarray[Any, Any]], version: int) -> dict[str, Any]:
    """Return the points of a map as JSON: names, and records of 28 bytes in base64.

    A record is x and y (uint16, of 65,535), source and type (uint16, places in the lists of names), cluster (uint16),
    two unused bytes, and the id of the document (16 bytes), all little-endian.

    Args:
        found: as `parquetry.storage.analysis.lists.placed` returns it.
        version: version of the corpus that was analyzed.
    """
    count = min(len(found["x"]), MOST_POINTS)
    kinds = [kind_of(each) for each in found["media_type"][:count]]
    sources, of_source = _numbered([str(each) for each in found["source"][:count]])
    types, of_type = _numbered(kinds)
    records = np.zeros(
        count, [("place", "<u2", 2), ("source", "<u2"), ("type", "<u2"), ("rest", "<u2", 2), ("id", "V16")]
    )
    records["place"][:, 0] = np.round(np.clip(found["x"][:count], 0, 1) * _SCALE)
    records["place"][:, 1] = np.round(np.clip(found["y"][:count], 0, 1) * _SCALE)
    records["source"], records["type"] = of_source, of_type
    records["rest"][:, 0] = np.asarray(found["cluster"][:count], np.uint16)
    ids = b"".join(UUID(str(each)).bytes for each in found["document_id"][:count])
    records["id"] = np.frombuffer(ids, "V16")
    return {
        "version": version,
        "count": count,
        "left_out": len(found["x"]) - count,
        "sources": sources,
        "types": types,
        "points": base64.b64encode(records.tobytes()).decode("ascii"),
    }


def _numbered(values: Sequence[str]) -> tuple[list[str], np.ndarray[Any, np.dtype[np.uint16]]]:
    """Return the distinct values, the most frequent first, and the place of each value among them."""
    counted = [value for value, _ in Counter(values).most_common()]
    names = counted[:_MOST_NAMES] + (["Others"] if len(counted) > _MOST_NAMES else [])
    places = {value: min(place, _MOST_NAMES) for place, value in enumerate(counted)}
    return names, np.array([places[value] for value in values], np.uint16)


def cluster_names(found: Sequence[tuple[int, int, Sequence[str]]]) -> list[tuple[int, int, str]]:
    """Return number, size and name of each cluster: words that its documents' names have more often than others'.

    Args:
        found: number, size and names of documents of each cluster.
    """
    words = [Counter(word for name in names[:_MOST_TITLES] for word in set(_words(name))) for _, _, names in found]
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
