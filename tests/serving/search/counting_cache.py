"""A cache for readers that tells how many rankings are in memory while they search."""

from __future__ import annotations

import gc
from collections.abc import Hashable

from parquetry.serving.search.answer_cache import AnswerCache
from parquetry.serving.search.requests import Ranking


class CountingCache(AnswerCache[Ranking]):
    """Cache without room that counts the rankings in memory, of this process, when a new one arrives."""

    def __init__(self) -> None:
        super().__init__(0)
        self._earlier = _rankings()
        self.held: list[int] = []
        """one number for each computed ranking, itself included"""

    def put(self, key: Hashable, value: Ranking) -> None:
        self.held.append(len(_rankings()) - len(self._earlier))
        super().put(key, value)


def _rankings() -> list[Ranking]:
    return [each for each in gc.get_objects() if type(each) is Ranking]
