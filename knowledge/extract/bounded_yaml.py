"""YAML of strangers: what aliases and merge keys make of a text is counted while it is read."""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 100
"""collections in each other"""
MAX_GROWTH = 10
"""times the characters of a text that its aliases may make of it"""
FREE_GROWTH = 10_000
"""characters that aliases may add to any text"""


def load(text: str) -> object:
    """The value of a text in YAML, with plain values only.

    Raises:
        ValueError: it is not YAML, nested deeper than `MAX_DEPTH`, or grows when aliases are followed.
    """
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    # Values that are not what their tag or their form says show as any of these.
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """Counts what each node stands for; an alias stands for all that its anchor holds."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._room = FREE_GROWTH + MAX_GROWTH * len(text)
        self._depth = 0
        self._sizes: dict[Any, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self._depth >= MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels (too-deep)")
        before = self._room
        is_alias = self.check_event(yaml.AliasEvent)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if not is_alias:
            self._room -= 1 + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
            self._sizes[node] = before - self._room
        elif node in self._sizes:
            self._room -= self._sizes[node]
        else:
            raise ValueError("an alias stands within what it names")
        if self._room < 0:
            raise ValueError(f"its aliases make it more than {MAX_GROWTH} times as long")
        return node
