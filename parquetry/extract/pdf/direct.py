"""Calls PDFium's functions without conversion of handles and pointers, where a page needs thousands of calls.

A handle is passed and returned as an integer, a place for results as its address, and the lock of the interpreter is
kept: with pypdfium2's own declarations, a call takes about twice as long.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

HANDLE = ADDRESS = ctypes.c_void_p


def handle(raw: Any) -> int:
    """Return the integer of a handle, such as `PdfPage.raw`."""
    return ctypes.cast(raw, ctypes.c_void_p).value or 0


def direct(function: Any, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a function of `pypdfium2.raw` with other types.

    Args:
        function: as declared by pypdfium2.
        result: ctypes type of its result.
        arguments: ctypes types of its arguments.
    """
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    declared: Callable[..., Any] = ctypes.PYFUNCTYPE(result, *arguments)(address)
    return declared
