"""Chunker: cuts texts into chunks with exact spans."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from parquetry.chunking.packer import Packer, items
from parquetry.chunking.splitter import Cutter, Ruler, Span, count_tokens, load_tokenizer
from parquetry.chunking.tables import Tables
from parquetry.errors import SettingsError
from parquetry.model import Chunk, Heading, Part

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from parquetry.settings.embedding import ChunkingSettings

REST = 0.1
"""share of a chunk that a line before its first heading may take without the chunk being of the section before"""


class Chunker:
    """Split texts along their structure: sections, paragraphs, sentences, words.

    Cheap to build and to pickle; its dependencies are loaded at the first text.

    Args:
        settings: size, overlap and unit.
        tokenizer: path or content of a `tokenizer.json`; required if tokens are counted.

    Raises:
        SettingsError: tokens are to be counted, but there is no tokenizer.
    """

    def __init__(self, settings: ChunkingSettings, tokenizer: str | None) -> None:
        if settings.unit == "tokens" and tokenizer is None:
            raise SettingsError('chunking.unit = "tokens" needs an embedder with a tokenizer; use "characters"')
        self._settings = settings
        self._source = tokenizer if settings.unit == "tokens" else None
        self._loaded: Tokenizer | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_source": self._source, "_loaded": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def split(self, text: str, parts: Sequence[Part], headings: Sequence[Heading]) -> tuple[Chunk, ...]:
        """Split one text.

        Args:
            text: normalised.
            parts: of the text, in order, not overlapping.
            headings: of the text, in order.

        Returns:
            The chunks in order of their start. Every character but white space is in one; none is empty or has white
            space at its ends; none crosses the end of a part, unless it is a page and the settings allow it.
        """
        tokenizer = self._tokenizer()
        ruler = Ruler(text, tokenizer)
        cutter = Cutter(text, ruler, self._settings.size, self._settings.overlap)
        places = _Places(headings, parts)
        tables = Tables(text)
        found: list[tuple[Part, Span]] = []
        for region in _regions(text, parts, across_pages=self._settings.across_pages):
            cutter.lines = region.format == "code"
            spans = _trimmed(text, self._spans(text, region, places.within(region), cutter, ruler, tables))
            if tokenizer is not None:
                spans = self._checked(text, spans, cutter, tokenizer)
            found += [(region, span) for span in spans]
        chunks: list[Chunk] = []
        for region, (start, end) in found:
            part = places.part(start) or region
            page = None if part.kind == "document" else part.number
            path = places.path(start, start + int(REST * (end - start)))
            head = tables.head(start, path)
            chunks.append(Chunk(len(chunks), start, end, part.kind, page, (*path, head) if head else path))
        return tuple(chunks)

    def _spans(
        self, text: str, region: Part, headings: Sequence[Heading], cutter: Cutter, ruler: Ruler, tables: Tables
    ) -> list[Span]:
        start, end = region.start, region.end
        tables.add_lines(region)
        if region.format == "code" and not headings:
            return cutter.code(start, end, region.language)
        markdown = region.format in ("markdown", "table")
        if not headings and not (markdown and _has_blocks(text, start, end)):
            return cutter.text(start, end)
        packer = Packer(cutter, ruler, self._settings.size, self._settings.overlap)
        for item in items(text, start, end, headings, markdown=markdown):
            if item.kind == "table":
                tables.add(item.start, item.end, start)
            packer.add(replace(item, kind="code") if region.format == "code" and item.kind == "text" else item)
        packer.close()
        return packer.spans

    def _checked(self, text: str, spans: list[Span], cutter: Cutter, tokenizer: Tokenizer) -> list[Span]:
        """Split again the pieces that are too long: a piece by itself may have more tokens than within its text."""
        sizes = count_tokens(tokenizer, [text[start:end] for start, end in spans])
        checked: list[Span] = []
        for span, size in zip(spans, sizes, strict=True):
            checked += [span] if size <= self._settings.size else self._shorter(text, span, size, cutter, tokenizer)
        repeated = [text[start : max(start, before_end)] for (_, before_end), (start, _) in pairwise(checked)]
        for place, size in enumerate(count_tokens(tokenizer, repeated), start=1):
            start, end = checked[place]
            lower, upper = checked[place - 1]
            # A piece that was split again may start after the text that the next one repeats.
            if size > self._settings.overlap or start <= lower:
                start = min(cutter.overlap_start(max(lower, start), upper, self._settings.overlap // 2), end)
                checked[place] = (start, end)
        return _trimmed(text, checked)

    def _shorter(self, text: str, span: Span, size: int, cutter: Cutter, tokenizer: Tokenizer) -> list[Span]:
        limit = self._settings.size
        sizes = [size]
        spans = [span]
        while max(sizes) > self._settings.size:
            limit = max(1, int(min(limit * 0.9, limit * self._settings.size / max(sizes))))
            spans = _trimmed(text, cutter.shorter(*span, limit))
            sizes = count_tokens(tokenizer, [text[start:end] for start, end in spans])
            if limit == 1:
                break
        return spans

    def _tokenizer(self) -> Tokenizer | None:
        if self._loaded is None and self._source is not None:
            self._loaded = load_tokenizer(self._source)
        return self._loaded


def _has_blocks(text: str, start: int, end: int) -> bool:
    return any(text.find(mark, start, end) >= 0 for mark in ("|", "```", "~~~"))


def _trimmed(text: str, spans: Sequence[Span]) -> list[Span]:
    """Strip white space from the ends of spans, and drop spans that are empty or within the one before."""
    trimmed: list[Span] = []
    for start, end in spans:
        piece = text[start:end]
        bare = piece.lstrip()
        start += len(piece) - len(bare)
        end = start + len(bare.rstrip())
        if start < end and not (trimmed and end <= trimmed[-1][1]):
            trimmed.append((start, end))
    return trimmed


def _regions(text: str, parts: Sequence[Part], *, across_pages: bool) -> Iterator[Part]:
    """Yield spans that no chunk crosses: the parts, consecutive pages as one if wanted, and text outside all parts."""
    place = 0
    pending: Part | None = None
    for part in parts:
        if text[place : part.start].strip():
            if pending is not None:
                yield pending
                pending = None
            yield Part(place, part.start, "document", 1, None, "text")
        place = max(place, part.end)
        if (
            across_pages
            and pending is not None
            and pending.kind == part.kind == "page"
            and pending.format == part.format
        ):
            pending = replace(pending, end=part.end)
            continue
        if pending is not None:
            yield pending
        pending = part
    if pending is not None:
        yield pending
    if text[place:].strip():
        yield Part(place, len(text), "document", 1, None, "text")


class _Places:
    """Find the page and headings of a position."""

    def __init__(self, headings: Sequence[Heading], parts: Sequence[Part]) -> None:
        self._headings = headings
        self._starts = [heading.start for heading in headings]
        self._paths = list(_paths(headings))
        self._parts = parts
        self._part_starts = [part.start for part in parts]

    def within(self, region: Part) -> Sequence[Heading]:
        low = bisect_right(self._starts, region.start - 1)
        high = bisect_right(self._starts, region.end - 1)
        return self._headings[low:high]

    def path(self, start: int, latest: int) -> tuple[str, ...]:
        """Return the headings above a position, or those of the first heading that begins from there to `latest`."""
        place = bisect_right(self._starts, start)
        begins = place > 0 and self._starts[place - 1] == start
        if not begins and place < len(self._starts) and self._starts[place] <= latest:
            place += 1
        return self._paths[place - 1] if place else ()

    def part(self, start: int) -> Part | None:
        place = bisect_right(self._part_starts, start)
        part = self._parts[place - 1] if place else None
        return part if part is not None and start < part.end else None


def _paths(headings: Sequence[Heading]) -> Iterator[tuple[str, ...]]:
    above: list[Heading] = []
    for heading in headings:
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        yield tuple(outer.title for outer in above)
