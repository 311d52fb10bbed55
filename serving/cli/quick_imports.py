"""Imports of commands without what takes time and brings nothing."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
"""environment variable, see https://docs.pydantic.dev/latest/concepts/plugins/"""


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import without what takes time and brings nothing.

    Garbage collection looks through modules, which stay, again and again: 20 ms. Plugins of Pydantic would watch the
    validation of our settings; looking for them reads the metadata of all packages: 10 ms.
    """
    was_enabled, plugins = gc.isenabled(), os.environ.get(_PLUGINS)
    gc.disable()
    os.environ[_PLUGINS] = "__all__"
    try:
        yield
    finally:
        if plugins is None:
            del os.environ[_PLUGINS]
        else:
            os.environ[_PLUGINS] = plugins
        if was_enabled:
            gc.enable()
