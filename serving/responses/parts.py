"""Output items of a response while they grow, each with the events that tell of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from parquetry.serving.responses.citations import CitationReader

Event = dict[str, Any]
Emit = Callable[..., Event]
"""type and fields of an event -> the event with its number"""
ItemStatus = Literal["in_progress", "completed", "incomplete", "failed"]


@dataclass(slots=True)
class MessageItem:
    """An answer in words, or the refusal of one."""

    id: str
    index: int
    """place among the items of the output; likewise below"""
    emit: Emit
    reader: CitationReader
    refusal: str | None = None
    """None for an answer"""
    status: ItemStatus = "in_progress"

    def open(self) -> Iterator[Event]:
        """Begin the item and its only part."""
        empty = {**self._item(), "content": []}
        yield self.emit("response.output_item.added", output_index=self.index, item=empty)
        yield self._told("response.content_part.added", part=self._part())

    def say(self, piece: str) -> Iterator[Event]:
        """Take the next piece of the answer as the model writes it."""
        for read in self.reader.feed(piece):
            yield self._read(read)

    def decline(self, piece: str) -> Iterator[Event]:
        """Take the next piece of a refusal."""
        self.refusal = (self.refusal or "") + piece
        yield self._told("response.refusal.delta", delta=piece)

    def close(self, status: ItemStatus) -> Iterator[Event]:
        """End the item."""
        if self.refusal is None:
            for read in self.reader.finish():
                yield self._read(read)
            yield self._told("response.output_text.done", text=self.reader.text, logprobs=[])
        else:
            yield self._told("response.refusal.done", refusal=self.refusal)
        yield self._told("response.content_part.done", part=self._part())
        self.status = status
        yield self.emit("response.output_item.done", output_index=self.index, item=self.item())

    def item(self) -> Mapping[str, Any]:
        """Return the item as it is now."""
        return {**self._item(), "content": [self._part()]}

    def _item(self) -> dict[str, Any]:
        return {"id": self.id, "type": "message", "status": self.status, "role": "assistant"}

    def _part(self) -> Mapping[str, Any]:
        if self.refusal is not None:
            return {"type": "refusal", "refusal": self.refusal}
        annotations = list(self.reader.annotations)
        return {"type": "output_text", "text": self.reader.text, "annotations": annotations, "logprobs": []}

    def _read(self, read: str | Mapping[str, Any]) -> Event:
        if isinstance(read, str):
            return self._told("response.output_text.delta", delta=read, logprobs=[])
        number = self.reader.annotations.index(read)
        return self._told("response.output_text.annotation.added", annotation_index=number, annotation=read)

    def _told(self, kind: str, **fields: Any) -> Event:
        return self.emit(kind, item_id=self.id, output_index=self.index, content_index=0, **fields)


@dataclass(slots=True)
class FunctionItem:
    """A call of a function of the client."""

    id: str
    index: int
    emit: Emit
    call_id: str
    name: str
    arguments: str = ""
    status: ItemStatus = "in_progress"

    def open(self) -> Iterator[Event]:
        """Begin the item."""
        yield self.emit("response.output_item.added", output_index=self.index, item=self.item())

    def extend(self, piece: str) -> Iterator[Event]:
        """Take the next piece of the arguments."""
        self.arguments += piece
        yield self.emit("response.function_call_arguments.delta", item_id=self.id, output_index=self.index, delta=piece)

    def close(self, status: ItemStatus) -> Iterator[Event]:
        """End the item."""
        yield self.emit(
            "response.function_call_arguments.done",
            item_id=self.id,
            output_index=self.index,
            name=self.name,
            arguments=self.arguments,
        )
        self.status = status
        yield self.emit("response.output_item.done", output_index=self.index, item=self.item())

    def item(self) -> Mapping[str, Any]:
        """Return the item as it is now."""
        call = {"call_id": self.call_id, "name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function_call", "status": self.status, **call}


@dataclass(slots=True)
class SearchItem:
    """A call of `file_search`, which this service carries out."""

    id: str
    index: int
    emit: Emit
    call_id: str
    with_results: bool
    """True if the client wants the results"""
    name: str
    """of the function that the model called"""
    arguments: str = ""
    queries: Sequence[str] = ()
    results: Sequence[Mapping[str, Any]] | None = None
    status: ItemStatus = field(default="in_progress")

    def open(self) -> Iterator[Event]:
        """Begin the item."""
        yield self.emit("response.output_item.added", output_index=self.index, item=self.item())
        yield self._told("in_progress")

    def extend(self, piece: str) -> Iterator[Event]:
        """Take the next piece of the arguments, of which clients hear as queries only."""
        self.arguments += piece
        yield from ()

    def search(self, queries: Sequence[str]) -> Iterator[Event]:
        """Begin the search."""
        self.queries = queries
        yield self._told("searching")

    def found(self, results: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
        """End the item with results."""
        self.results = results
        yield self._told("completed")
        yield from self.close("completed")

    def close(self, status: ItemStatus) -> Iterator[Event]:
        """End the item."""
        self.status = status
        yield self.emit("response.output_item.done", output_index=self.index, item=self.item())

    def item(self) -> Mapping[str, Any]:
        """Return the item as it is now."""
        shown = list(self.results) if self.with_results and self.results is not None else None
        state = {"status": self.status, "queries": list(self.queries), "results": shown}
        return {"id": self.id, "type": "file_search_call", **state}

    def _told(self, state: str) -> Event:
        return self.emit(f"response.file_search_call.{state}", item_id=self.id, output_index=self.index)


OutputItem = MessageItem | FunctionItem | SearchItem
