"""Results over a whole version of the corpus, computed once for each version and caller."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from parquetry.serving.search.service import Reader

MOST_KEPT = 500
"""results, the least recently used of which give way"""
Result = TypeVar("Result")
MOST_LARGE = 8
"""large results, such as the points of a map"""
_kept: OrderedDict[Hashable, Any] = OrderedDict()
_large: OrderedDict[Hashable, Any] = OrderedDict()
_lock = threading.Lock()


def of_version(reader: Reader, key: Hashable, compute: Callable[[], Result], *, large: bool = False) -> Result:
    """Return what a function computes of a version; a version never changes.

    Args:
        reader: reader of the version.
        key: name of the result, with the caller and the filters that it depends on.
        compute: the function.
        large: True for a result of megabytes, of which few are kept.
    """
    kept, most = (_large, MOST_LARGE) if large else (_kept, MOST_KEPT)
    whole = (reader.snapshot.layout.root, reader.snapshot.version, key)
    with _lock:
        if whole in kept:
            kept.move_to_end(whole)
            return cast(Result, kept[whole])
    found = compute()
    with _lock:
        kept[whole] = found
        while len(kept) > most:
            kept.popitem(last=False)
    return found
