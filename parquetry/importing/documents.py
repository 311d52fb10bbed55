"""Documents from the chunks of a dump: one text, with the span of each chunk in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any

from parquetry import ids
from parquetry.embed.base import Vectors
from parquetry.importing.chunk import DocumentFacts, ImportedChunk, RejectedRow
from parquetry.importing.fields import facts_text
from parquetry.model import Access, Chunk, Part

MOST_CHUNKS = 50_000
"""chunks of a document"""
_BETWEEN = "\n\n"
"""text between chunks whose places are unknown"""
_MOST_GAPS = 10_000
"""characters that may be missing between the chunks of a document, besides as many as they have"""


@dataclass(frozen=True, slots=True)
class ImportedDocument:
    """A document of a dump with its chunks, ready to be stored."""

    path: str
    facts: DocumentFacts
    text: str
    parts: tuple[Part, ...]
    chunks: tuple[Chunk, ...]
    texts: tuple[str, ...]
    """of the chunks"""
    tokens: tuple[int | None, ...]
    """of the chunks; None if the dump does not say"""
    vectors: Vectors
    """float32[chunks, dimension]"""
    content_hash: str
    """over everything above"""
    dropped: frozenset[str]
    """keys of metadata that differ between its chunks, and are not kept"""

    @property
    def access(self) -> Access:
        """Audience and labels."""
        return self.facts.access or Access()


def document_of(chunks: Sequence[ImportedChunk], vectors: Vectors, embedder: str) -> ImportedDocument:
    """Return the document that chunks make up.

    Args:
        chunks: chunks of one path, in the order of the dump.
        vectors: float32[chunks, dimension].
        embedder: id of the model.

    Raises:
        RejectedRow: they are no single document.
    """
    if len(chunks) > MOST_CHUNKS:
        raise RejectedRow("too-large", f"it has more than {MOST_CHUNKS:,} chunks; --document-field divides them anew")
    if len({chunk.document_id for chunk in chunks}) > 1:
        raise RejectedRow("duplicate-path", "the dump holds several documents of this path; import them apart")
    if len({chunk.facts.access for chunk in chunks}) > 1:
        raise RejectedRow("bad-access", "its chunks state different audiences")
    order = _order(chunks)
    chunks, vectors = [chunks[place] for place in order], vectors[order]
    spans, text = _placed(chunks) or _joined(chunks)
    facts, dropped = _facts(chunks)
    made = tuple(
        Chunk(number, start, start + len(chunk.text), chunk.kind, chunk.page, chunk.headings)
        for number, (chunk, start) in enumerate(zip(chunks, spans, strict=True))
    )
    texts = tuple(chunk.text for chunk in chunks)
    said = json.dumps(
        [embedder, facts_text(facts), [[each.start, each.kind, each.page, each.headings] for each in made]]
    )
    blocks = (said.encode(), text.encode(), *(part.encode() + b"\0" for part in texts), vectors.tobytes())
    return ImportedDocument(
        chunks[0].path,
        facts,
        text,
        _parts(made, text),
        made,
        texts,
        tuple(chunk.tokens for chunk in chunks),
        vectors,
        ids.copied_hash(blocks, len),
        dropped,
    )


def _order(chunks: Sequence[ImportedChunk]) -> list[int]:
    """Return the places of chunks in the order of their document."""
    places = range(len(chunks))
    indices = {chunk.index for chunk in chunks}
    if None not in indices and len(indices) == len(chunks):
        return sorted(places, key=lambda place: chunks[place].index or 0)
    if all(chunk.start is not None for chunk in chunks):
        return sorted(places, key=lambda place: (chunks[place].page or 0, chunks[place].start or 0, place))
    return sorted(places, key=lambda place: (chunks[place].page or 0, place))


def _placed(chunks: Sequence[ImportedChunk]) -> tuple[list[int], str] | None:
    """Return the starts of chunks as the dump gives them, and their text; None if they do not fit each other.

    What stands between two chunks is not in the dump; spaces take its place.
    """
    pieces: list[str] = []
    starts: list[int] = []
    tail, end, missing = "", 0, _MOST_GAPS + sum(len(chunk.text) for chunk in chunks)
    for chunk in chunks:
        if chunk.start is None or chunk.start < (starts[-1] if starts else 0):
            return None
        gap = chunk.start - end
        missing -= max(gap, 0)
        if missing < 0:
            return None
        if gap >= 0:
            pieces += [" " * gap, chunk.text]
            tail = chunk.text
        else:
            # `tail` reaches from the start of the chunk before, or earlier, to the end of the text.
            shared = tail[gap:] if -gap <= len(tail) else None
            if shared is None or not (chunk.text.startswith(shared) or shared.startswith(chunk.text)):
                return None
            pieces.append(chunk.text[-gap:])
            tail = tail if len(chunk.text) <= -gap else chunk.text
        starts.append(chunk.start)
        end = max(end, chunk.start + len(chunk.text))
    return starts, "".join(pieces)


def _joined(chunks: Sequence[ImportedChunk]) -> tuple[list[int], str]:
    """Return the starts of chunks that follow each other, and their text."""
    starts, end = [], 0
    for chunk in chunks:
        starts.append(end)
        end += len(chunk.text) + len(_BETWEEN)
    return starts, _BETWEEN.join(chunk.text for chunk in chunks)


def _parts(chunks: Sequence[Chunk], text: str) -> tuple[Part, ...]:
    """Return the pages of a text, as far as its chunks tell."""
    runs = [(unit, next(group).start) for unit, group in groupby(chunks, lambda chunk: (chunk.kind, chunk.page or 1))]
    starts = [0, *(start for _, start in runs[1:]), len(text)]
    numbers = [number for (_, number), _ in runs]
    if any(end <= start for start, end in pairwise(starts)) or len(set(numbers)) < len(numbers):
        return (Part(0, len(text), "document", 1, None, "text"),)
    return tuple(
        Part(start, end, unit[0], unit[1], None, "text")
        for (unit, _), (start, end) in zip(runs, pairwise(starts), strict=True)
    )


def _facts(chunks: Sequence[ImportedChunk]) -> tuple[DocumentFacts, frozenset[str]]:
    """Return what the rows of a document agree on, and the keys of metadata on which they do not."""
    first = chunks[0].facts
    kept: dict[str, Any] = dict(first.metadata)
    keys = set(kept)
    for chunk in chunks[1:]:
        if chunk.facts.metadata != first.metadata:
            keys |= chunk.facts.metadata.keys()
            kept = {key: value for key, value in kept.items() if chunk.facts.metadata.get(key) == value}
    return replace(first, metadata=kept), frozenset(keys - kept.keys())
