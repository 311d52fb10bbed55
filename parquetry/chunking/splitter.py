"""Splitting of running text, code and table rows to size, measured in characters or tokens."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Protocol

from parquetry.language.grammars import GRAMMARS, MAX_CHARACTERS, grammar, parsed

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Span = tuple[int, int]
"""0-based start, one past the end"""

WINDOW_CHARACTERS = 32_768
"""maximum characters per call of the splitter, which takes quadratic time: 32 KB run at 150 MB/s, 3 MB at 8 MB/s"""
_ROW_WINDOW_CHARACTERS = 4096
"""the same for rows of tables, where everything is a word: 4 KB run at 28 MB/s, 32 KB at 5 MB/s"""
_CODE_WINDOW_CHARACTERS = 262_144
"""maximum characters of code split at once: code is parsed as a whole where possible, unless it has a line of more than
WINDOW_CHARACTERS, which is in no program and takes quadratic time as well"""
_MAX_CODE_DEPTH = 250
"""maximum depth of a syntax tree: the code splitter takes cubic time in it; programs have tens of levels"""
_TINY = 5
"""divisor of the size below which a piece of code joins its neighbour, if both fit"""

_SHORT_HEAD = 3
"""divisor of the room below which a first piece is filled up"""

_SENTENCE_START = re.compile(r"[.!?…][\"')\]»”’]*\s+|[。！？]\s*|\n+")
_LINE_START = re.compile(r"\n+")
_LINE_WITH_BREAKS = re.compile(r"[^\n]*\n+|[^\n]+$")
_LINES_AT_ONCE = 4096
_GAP = re.compile(r"(?<!\s)\s{1000,}+")
_NOT_SPACE = re.compile(r"\S")
_WORD_START = re.compile(r"\s+")

_ALIASES = {
    "py": "python", "python3": "python", "pycon": "python", "js": "javascript", "jsx": "javascript", "ts": "typescript",
    "mjs": "javascript", "node": "javascript", "rs": "rust", "golang": "go", "h": "c", "c++": "cpp", "cc": "cpp",
    "cxx": "cpp", "hpp": "cpp", "sh": "bash", "shell": "bash", "zsh": "bash", "console": "bash",
}  # fmt: skip


class _Costly(Exception):
    """Code that would take too long to split at statements."""


class _Splitter(Protocol):
    def chunk_indices(self, text: str) -> list[tuple[int, str]]: ...


class Ruler:
    """Measure spans of one text.

    Args:
        text: to measure.
        tokenizer: counts tokens; None counts characters.
    """

    def __init__(self, text: str, tokenizer: Tokenizer | None) -> None:
        self.in_characters = tokenizer is None
        self._starts: list[int] | None = None if tokenizer is None else _token_starts(text, tokenizer)

    def size(self, start: int, end: int) -> int:
        """Return the units in a span; tokens are approximate, as those at its ends depend on the surrounding text."""
        if self._starts is None:
            return max(0, end - start)
        return bisect_left(self._starts, end) - bisect_left(self._starts, start)

    def back(self, end: int, units: int) -> int:
        """Return the offset that many units before `end`."""
        if self._starts is None:
            return max(0, end - units)
        place = bisect_left(self._starts, end) - units
        return self._starts[place] if 0 < place < len(self._starts) else 0 if place <= 0 else end

    def ahead(self, start: int, units: int) -> int:
        """Return the offset that many units after `start`."""
        if self._starts is None:
            return start + units
        place = bisect_left(self._starts, start) + units
        return self._starts[place] if place < len(self._starts) else start + (1 << 60)


class Cutter:
    """Cut spans of one text into pieces of at most `size` units, at the best places available.

    Args:
        text: the whole text.
        ruler: of that text.
        size: largest piece, in units.
        overlap: of neighbouring pieces, in units.
    """

    def __init__(self, text: str, ruler: Ruler, size: int, overlap: int) -> None:
        self._text = text
        self._ruler = ruler
        self._size = size
        self._overlap = overlap
        self.lines = False
        """True if the repeated text begins with a line, as in code, rather than with a sentence"""

    def text(self, start: int, end: int, first: int | None = None, overlap: int | None = None) -> list[Span]:
        """Cut running text at paragraphs, or else at sentences, words, characters.

        Args:
            start: 0-based.
            end: one past the end.
            first: largest first piece, in units, if it is to be smaller than the others.
            overlap: overlap in units, if other than usual.
        """
        overlap = self._overlap if overlap is None else overlap
        if first is None or first >= self._size:
            return self._prose(start, end, overlap)
        head = self._head(start, end, first)
        if not self._text_left(head[1], end):
            return [head]
        return [head, *self._prose(self.overlap_start(*head, overlap), end, overlap)]

    def shorter(self, start: int, end: int, size: int) -> list[Span]:
        """Cut running text into pieces of at most `size` units, without overlap."""
        spans: list[Span] = []
        while self._text_left(start, end):
            head = self._first(start, end, size)
            spans.append(head)
            start = head[1]
        return spans

    def _prose(self, start: int, end: int, overlap: int, window: int = WINDOW_CHARACTERS) -> list[Span]:
        if self._ruler.in_characters:
            return self._apply(_text_splitter(self._size, overlap), start, end, window)
        # The splitter counts the tokens of everything it considers, again and again: here they are counted once, and
        # passed to it as a number of characters.
        spans: list[Span] = []
        while self._text_left(start, end):
            piece = self._first(start, end, self._size)
            if spans and piece[1] <= spans[-1][1]:
                start = spans[-1][1]
                continue
            spans.append(piece)
            if not self._text_left(piece[1], end):
                break
            start = self.overlap_start(*piece, overlap)
        return spans

    def _head(self, start: int, end: int, size: int) -> Span:
        """Return a first piece joined to the text before it, filled with sentences if its first paragraph is short."""
        head = self._first(start, end, size)
        if self._ruler.size(*head) * _SHORT_HEAD < size:
            latest = min(end, self._ruler.ahead(start, size))
            for found in _SENTENCE_START.finditer(self._text, head[1], latest):
                if found.end() > head[1] and self._ruler.size(start, found.end()) <= size:
                    head = (start, found.end())
        return head

    def _first(self, start: int, end: int, size: int) -> Span:
        far = self._ruler.ahead(start, size)
        if far >= end:
            return start, end
        # Text that cannot be in the first piece would only cost time.
        capacity = max(1, far - start)
        pieces = self._apply(_text_splitter(capacity, 0), start, min(end, start + 2 * capacity + 64))
        if pieces:
            return pieces[0]
        written = _NOT_SPACE.search(self._text, start, end)
        return self._first(written.start(), end, size) if written else (start, end)

    def _text_left(self, start: int, end: int) -> bool:
        return _NOT_SPACE.search(self._text, start, end) is not None

    def code(self, start: int, end: int, language: str | None, first: int | None = None) -> list[Span]:
        """Cut code at definitions and statements if its grammar is known, otherwise at blank lines and lines."""
        name = _ALIASES.get((language or "").lower(), (language or "").lower())
        generated = end - start > MAX_CHARACTERS
        if name not in GRAMMARS or generated or (first is not None and first < self._size):
            return self.text(start, end, first)
        size, overlap = self._size, self._overlap
        if not self._ruler.in_characters:
            scale = 0.85 * (end - start) / max(1, self._ruler.size(start, end))
            size, overlap = max(16, int(size * scale)), int(overlap * scale * 0.8)
        from semantic_text_splitter import CodeSplitter

        splitter = CodeSplitter(grammar(name), size, min(overlap, size - 1))
        pieces: list[Span] = []
        window = WINDOW_CHARACTERS if self._has_line(start, end, WINDOW_CHARACTERS) else _CODE_WINDOW_CHARACTERS
        try:
            for stretch in self._between_gaps(start, end):
                # The structure of a whole may differ from that of its beginning.
                pieces += self._apply(splitter, *stretch, window, partial(self._refuse_costly, name))
        except _Costly:
            return self.text(start, end, first)
        joined = pieces[:1]
        for piece in pieces[1:]:
            before = joined[-1]
            tiny = min(self._ruler.size(*before), self._ruler.size(*piece)) < self._size / _TINY
            if tiny and self._ruler.size(before[0], piece[1]) <= self._size:
                joined[-1] = (before[0], max(before[1], piece[1]))
            else:
                joined.append(piece)
        return joined

    def _between_gaps(self, start: int, end: int) -> Iterator[Span]:
        """Yield the text between white space too long for any piece, which would take the splitter quadratic time."""
        for gap in _GAP.finditer(self._text, start, end):
            if self._ruler.size(*gap.span()) > self._size:
                yield start, gap.start()
                start = gap.end()
        yield start, end

    def _has_line(self, start: int, end: int, length: int) -> bool:
        """Return True if a line has at least that length."""
        while end - start >= length:
            last = self._text.rfind("\n", start, start + length)
            if last < 0:
                return True
            start = last + 1
        return False

    def _refuse_costly(self, language: str, code: str) -> None:
        """Refuse code that cannot be parsed, or is nested so deeply that splitting it at statements takes too long.

        Raises:
            _Costly: the code is refused.
        """
        if len(code) <= _MAX_CODE_DEPTH:
            return
        tree = parsed(code.encode(), language)
        if tree is None:
            raise _Costly
        cursor = tree.walk()
        while True:
            if cursor.goto_first_child():
                if cursor.depth > _MAX_CODE_DEPTH:
                    raise _Costly
                continue
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return

    def rows(self, start: int, end: int, first: int | None = None) -> list[Span]:
        """Cut a table between rows; the header stays with its first row."""
        pieces: list[Span] = []
        room = self._size if first is None else min(first, self._size)
        for row_start, row_end in self._row_units(start, end):
            if pieces and self._ruler.size(pieces[-1][0], row_end) <= room:
                pieces[-1] = (pieces[-1][0], row_end)
            elif self._ruler.size(row_start, row_end) <= self._size:
                room = self._size if pieces else room
                pieces.append((row_start, row_end))
            else:
                pieces += self._prose(row_start, row_end, 0, _ROW_WINDOW_CHARACTERS)
                room = self._size
        return pieces

    def overlap_start(self, start: int, end: int, units: int) -> int:
        """Return the start of a piece that repeats at most that many units of the piece that ends at `end`.

        The first sentence start within them, or else the first word; `end` if there is nothing to repeat.
        """
        if units <= 0:
            return end
        earliest = self._ruler.back(end, units)
        if earliest <= start:
            return end
        for boundary in (_LINE_START if self.lines else _SENTENCE_START, _WORD_START):
            found = boundary.search(self._text, earliest, end)
            if found is not None and found.end() < end:
                return found.end()
        return earliest if end - earliest > 1 else end

    def _row_units(self, start: int, end: int) -> Iterator[Span]:
        lines = list(_lines(self._text, start, end))
        glued = 3 if len(lines) > 2 and is_delimiter_row(self._text[slice(*lines[1])]) else 1
        if glued == 3 and self._ruler.size(lines[0][0], lines[2][1]) <= self._size:
            yield lines[0][0], lines[2][1]
            lines = lines[3:]
        yield from lines

    def _apply(
        self,
        splitter: _Splitter,
        start: int,
        end: int,
        window: int = WINDOW_CHARACTERS,
        check: Callable[[str], None] | None = None,
    ) -> list[Span]:
        """Split a text in windows, each of which `check` may refuse."""
        spans: list[Span] = []
        window = max(window, 4 * self._size)
        while True:
            stop = min(end, start + window)
            text = self._text[start:stop]
            if check is not None:
                check(text)
            found = [(start + place, start + place + len(piece)) for place, piece in splitter.chunk_indices(text)]
            if stop == end:
                return spans + found
            # The last piece is cut by the window: the next window starts there.
            if len(found) > 1:
                spans += found[:-1]
                start = found[-1][0]
            else:
                window *= 2


_DELIMITER_ROW = re.compile(r"\s*+\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?\s*+$")


def is_delimiter_row(line: str) -> bool:
    """Return True if a line is the delimiter row below the header of a Markdown table."""
    return "-" in line and "|" in line and bool(_DELIMITER_ROW.match(line))


def load_tokenizer(source: str) -> Tokenizer:
    """Load a tokenizer from the path or the content of a `tokenizer.json`."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(source) if source.lstrip().startswith("{") else Tokenizer.from_file(source)
    # Truncation would cap the count, padding would add to it.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def count_tokens(tokenizer: Tokenizer, texts: list[str]) -> list[int]:
    return [len(encoding.ids) for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]


def _token_starts(text: str, tokenizer: Tokenizer) -> list[int]:
    """Return the offsets at which tokens start, line by line: some tokenizers take quadratic time over a long text."""
    lines = [(found.start(), found.end()) for found in _LINE_WITH_BREAKS.finditer(text)]
    starts: list[int] = []
    for place in range(0, len(lines), _LINES_AT_ONCE):
        batch = lines[place : place + _LINES_AT_ONCE]
        encodings = tokenizer.encode_batch([text[start:end] for start, end in batch], add_special_tokens=False)
        for (start, _), encoding in zip(batch, encodings, strict=True):
            starts.extend(start + offset for offset, _ in encoding.offsets)
    return starts


def _lines(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        if text[start:stop].strip():
            yield start, stop
        start = stop + 1


@lru_cache(maxsize=256)
def _text_splitter(size: int, overlap: int) -> _Splitter:
    from semantic_text_splitter import TextSplitter

    return TextSplitter(size, overlap)
