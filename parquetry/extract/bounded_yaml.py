"""YAML from untrusted sources, with limits on nesting and on the keys copied by merge keys."""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 100
"""levels of nested collections"""
MAX_MERGED = 10
"""keys that merge keys (`<<`) may copy per character of the text"""


def load(text: str) -> object:
    """Load a YAML text with plain values only. Aliased values exist once, however many aliases refer to them.

    Raises:
        ValueError: the text is not YAML, is nested deeper than `MAX_DEPTH`, or its merge keys copy too much.
    """
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    # Values that do not match their tag or form raise any of these.
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._left = MAX_MERGED * len(text)
        self._depth = 0
        self._merging: set[Any] = set()

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self._depth >= MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels (too-deep)")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def flatten_mapping(self, node: Any) -> None:
        """Merge mappings named by `<<`; inner ones first, so that their size is known before they are copied."""
        if node in self._merging:
            raise ValueError("a merge key names what it stands in")
        self._merging.add(node)
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                for named in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(named, yaml.MappingNode):
                        self.flatten_mapping(named)
                        self._left -= 1 + len(named.value)
                    if self._left < 0:
                        raise ValueError(f"its merge keys copy more than {MAX_MERGED} keys for each character")
        super().flatten_mapping(node)
        self._merging.remove(node)
