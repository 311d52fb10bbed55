"""PyArrow without pandas, for programs that do not use it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _HiddenPandas(MetaPathFinder):
    """Finds no pandas, wherever it is installed."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002 - as Python calls it
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden", name=fullname)


def use_without_pandas() -> None:
    """Tell PyArrow in this process that there is no pandas, unless it is imported already.

    PyArrow imports pandas, where it is installed, at its first conversion of Python values, to recognise its types: a
    fifth of a second. `to_pandas` still finds it.
    """
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    hidden = _HiddenPandas()
    sys.meta_path.insert(0, hidden)
    try:
        # The first conversion is the only one for which PyArrow looks.
        pa.array([0])
    finally:
        sys.meta_path.remove(hidden)
