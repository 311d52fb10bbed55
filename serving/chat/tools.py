"""Tools that the proxy offers a model and carries out itself, for the caller of the chat alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parquetry.errors import SettingsError
from parquetry.serving.chat.retrieval import ChatScope, in_thread, read_document, search
from parquetry.serving.service.grounding import ShownPassage, Sources, framed
from parquetry.serving.service.resources import Resources
from parquetry.storage.search.searcher import Hit

READ, SEARCH = "read_full_document", "search_knowledge"
MOST_CALLS = 8
"""calls of one answer that are carried out"""
READ_CHARACTERS = 20_000
"""characters of a document that one call returns"""
SEARCH_CHARACTERS = 12_000
TURN_CHARACTERS = 100_000
"""characters that all calls of a turn return"""
_MOST_FOUND, _FOUND = 20, 5
_LONGEST_ARGUMENT = 2_000
_LEAST_ROOM = 1_000
_SPECS: Mapping[str, tuple[str, dict[str, Any], list[str]]] = {
    READ: (
        "Read a document of the knowledge base, when a passage of it is not enough.",
        {
            "path": {
                "type": "string",
                "description": "Path of the document, or else the file name in its [Source: ...].",
            },
            "offset": {"type": "integer", "minimum": 0, "description": "Character to begin at; 0 by default."},
        },
        ["path"],
    ),
    SEARCH: (
        "Search the knowledge base for passages about something else than the question.",
        {
            "query": {"type": "string", "description": "Question or keywords."},
            "top_k": {"type": "integer", "minimum": 1, "maximum": _MOST_FOUND, "description": "Number of passages; 5."},
        },
        ["query"],
    ),
}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for."""

    call_id: str
    name: str
    arguments: str
    """JSON, as the model wrote it"""


class KnowledgeTools:
    """The tools of one turn.

    Args:
        resources: parts of the service.
        scope: documents that the turn may use.
        sources: passages that the model was shown.
        names: tools to offer.
    """

    def __init__(self, resources: Resources, scope: ChatScope, sources: Sources, names: Sequence[str]) -> None:
        self._resources, self._scope, self._sources = resources, scope, sources
        self._left = TURN_CHARACTERS
        self.names = frozenset(name for name in names if name != READ or scope.may_read)
        self.queries: list[str] = []
        """searches, in order"""
        self.hits: list[Hit] = []

    @property
    def specs(self) -> list[dict[str, Any]]:
        """Return the tools as a request names them."""
        found = []
        for name, (description, properties, required) in _SPECS.items():
            if name in self.names:
                parameters = {"type": "object", "properties": properties, "required": required}
                function = {"name": name, "description": description, "parameters": parameters}
                found.append({"type": "function", "function": function})
        return found

    async def run(self, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        """Carry out calls; return a message for each.

        Raises:
            ParquetryError: the corpus cannot be searched or read.
        """
        found = []
        for place, call in enumerate(calls):
            result = (
                await self._result(call) if place < MOST_CALLS else "Too many calls at once; this one was left out."
            )
            self._left -= len(result)
            found.append({"role": "tool", "tool_call_id": call.call_id, "content": result})
        return found

    async def _result(self, call: ToolCall) -> str:
        if call.name not in self.names:
            return f"There is no tool {call.name[:80]!r}."
        if self._left < _LEAST_ROOM:
            return "Enough was read for this question; answer it now."
        arguments = _arguments(call.arguments)
        if arguments is None:
            return "The arguments are no JSON object."
        if call.name == READ:
            return await self._read(arguments)
        return await self._search(arguments)

    async def _search(self, arguments: Mapping[str, Any]) -> str:
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            return "query is missing."
        query = query[:_LONGEST_ARGUMENT]
        hits = await search(
            self._resources, self._scope, query, top_k=_number(arguments.get("top_k"), 1, _MOST_FOUND, _FOUND)
        )
        self.queries.append(query)
        self.hits += hits
        shown = framed([ShownPassage.of(hit) for hit in hits], self._sources, min(SEARCH_CHARACTERS, self._left))
        return shown or "Nothing was found."

    async def _read(self, arguments: Mapping[str, Any]) -> str:
        name = arguments.get("path")
        if not isinstance(name, str) or not name.strip():
            return "path is missing."
        name = name.strip()[:_LONGEST_ARGUMENT]
        known = [each.document_id for each in self._sources.passages]
        try:
            document = await in_thread(read_document, self._resources, self._scope, name, known)
        except SettingsError as error:
            return str(error)
        if document is None:
            return f"There is no document {name[:80]!r}."
        offset = _number(arguments.get("offset"), 0, len(document.text), 0)
        most = min(READ_CHARACTERS, self._left) - 400
        end = min(len(document.text), offset + most)
        remark = f"characters {offset:,} to {end:,} of {len(document.text):,}"
        if end < len(document.text):
            remark += f"; offset {end} continues"
        passage = ShownPassage(
            document.document_id, document.filename, document.path, document.text[offset:end], remark=remark
        )
        return framed([passage], self._sources, most + 400)


def _arguments(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _number(value: Any, least: int, most: int, otherwise: int) -> int:
    """Return a whole number within bounds; models write numbers as texts, too."""
    try:
        return max(least, min(most, int(value)))
    except (TypeError, ValueError, OverflowError):
        return otherwise
