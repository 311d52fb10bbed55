"""Calls of tools in the answers of a model: those that the proxy carries out, and those that belong to the client."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parquetry.serving.chat.failures import UpstreamFailed
from parquetry.serving.chat.tools import ToolCall

_MOST_CALLS = 128
_MOST_CHARACTERS = 1024 * 1024
"""characters of the arguments of a call"""


def own_calls(calls: Sequence[Any], own: Collection[str]) -> list[tuple[ToolCall, dict[str, Any]]]:
    """Return the calls of the proxy's tools, each with the object that stands for it in the conversation."""
    found = []
    for number, call in enumerate(each for each in calls if isinstance(each, dict)):
        function = call.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(function, dict) and isinstance(name, str) and name in own:
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else ""
            call_id = str(call.get("id") or f"call_{number}")
            shown = {**call, "id": call_id, "type": "function", "function": {**function, "arguments": text or "{}"}}
            shown.pop("index", None)
            found.append((ToolCall(call_id, name, text), shown))
    return found


@dataclass
class _Pieces:
    """A call that arrives in pieces."""

    merged: dict[str, Any] = field(default_factory=dict)
    shown_as: int | None = None
    """number among the client's calls; None until it is known to be one"""

    @property
    def function(self) -> Mapping[str, Any]:
        function = self.merged.get("function")
        return function if isinstance(function, dict) else {}

    @property
    def name(self) -> str:
        return str(self.function.get("name") or "")


class StreamedCalls:
    """Calls of one streamed answer.

    Args:
        own: names of the proxy's tools.
        clients: names of the client's tools.
    """

    def __init__(self, own: Collection[str], clients: Collection[str] = ()) -> None:
        self._own, self._clients = own, clients
        self._calls: list[_Pieces] = []
        self._at: dict[int, _Pieces] = {}
        self._shown = 0

    def feed(self, deltas: Sequence[Any]) -> list[dict[str, Any]]:
        """Add pieces; return those of the client's calls, with numbers of their own.

        Raises:
            UpstreamFailed: there are too many, or they are too large.
        """
        passed = []
        for delta in deltas:
            if not isinstance(delta, dict):
                continue
            call = self._call_of(delta)
            _merge(call.merged, delta)
            if self._is_own(call) is not False:
                continue
            passed.append(self._shown_first(call) if call.shown_as is None else {**delta, "index": call.shown_as})
        return passed

    def rest(self) -> list[dict[str, Any]]:
        """Return calls whose names turned out to be only the beginning of one of the proxy's tools."""
        return [self._shown_first(each) for each in self._calls if each.shown_as is None and each.name not in self._own]

    def _shown_first(self, call: _Pieces) -> dict[str, Any]:
        call.shown_as, self._shown = self._shown, self._shown + 1
        return {**copy.deepcopy(call.merged), "index": call.shown_as}

    @property
    def has_clients(self) -> bool:
        """True if one of the calls belongs to the client."""
        return self._shown > 0

    @property
    def own(self) -> list[tuple[ToolCall, dict[str, Any]]]:
        """Calls of the proxy's tools, as `own_calls` returns them."""
        return own_calls([call.merged for call in self._calls], self._own)

    def _is_own(self, call: _Pieces) -> bool | None:
        """Return None while the name is not known."""
        name = call.name
        if name in self._own:
            return True
        whole = name in self._clients or bool(call.function.get("arguments"))
        if not whole and any(each.startswith(name) for each in self._own):
            return None
        return False

    def _call_of(self, delta: Mapping[str, Any]) -> _Pieces:
        index, call_id = delta.get("index"), delta.get("id")
        known = self._at.get(index) if isinstance(index, int) else self._calls[-1] if self._calls else None
        begins = known is None or (bool(call_id) and known.merged.get("id") not in (None, "", call_id))
        if known is None or begins:
            if len(self._calls) >= _MOST_CALLS:
                raise UpstreamFailed("upstream-broken", "the model calls too many tools at once")
            known = _Pieces()
            self._calls.append(known)
        if isinstance(index, int):
            self._at[index] = known
        return known


def _merge(merged: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key, value in delta.items():
        if key == "function" and isinstance(value, dict):
            function = merged.setdefault("function", {})
            for name, piece in value.items():
                _add(function, name, piece)
        elif key != "index" and value is not None:
            merged.setdefault(key, value)


def _add(function: dict[str, Any], name: str, piece: Any) -> None:
    before = function.get(name)
    if name == "arguments" and isinstance(piece, str):
        function[name] = (before or "") + piece
        if len(function[name]) > _MOST_CHARACTERS:
            raise UpstreamFailed("upstream-broken", "the model calls a tool with arguments that are too long")
    elif name == "name" and isinstance(piece, str) and isinstance(before, str) and before != piece:
        function[name] = before + piece
    elif before is None:
        function[name] = piece
