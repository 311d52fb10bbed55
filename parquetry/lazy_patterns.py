"""Regular expressions that are compiled when they are used first: a large class of characters takes milliseconds.

Most commands print and search ASCII only, and need none of them.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


class LazyPattern:
    """A pattern with the attributes and methods of `re.Pattern`.

    Args:
        source: regular expression; a wrong one is an error of the first use.
    """

    def __init__(self, source: str) -> None:
        self._source = source

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Return the pattern itself."""
        return re.compile(self._source)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the pattern; the next time, it is one of this object."""
        found = getattr(self.compiled, name)
        self.__dict__[name] = found
        return found


def lazy_pattern(source: str) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is used first."""
    return cast("re.Pattern[str]", LazyPattern(source))
