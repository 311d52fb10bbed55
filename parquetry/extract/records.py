"""JSON and JSON Lines as readable text that can be searched by keys."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract import allowance
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TABLE_BLOCK_CHARACTERS, TextBuilder
from parquetry.extract.encoding import decode, replaced
from parquetry.extract.terminal import as_shown
from parquetry.model import Extraction, RawDocument
from parquetry.plural import counted

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_MAX_TABLE_COLUMNS = 40
_LINE_CHARACTERS = 200
"""characters; longer text becomes a paragraph of its own, below its key"""
_MAX_NAMED_LINES = 20
_PATH_CHARACTERS = 400
"""characters of a path in nested data; the start of a longer path is omitted"""
_SHORT_PATH_CHARACTERS = 40
"""the same, once paths have used more than their share of the document's characters"""
_PATH_SHARE = 0.5

Pairs = tuple[tuple[str, Any], ...]
"""an object: its keys in order, including repeated ones"""


class TooDeepError(ValueError):
    """The value is nested deeper than the parser allows."""


class Literal(str):
    """A number, true, false or null, as written; of any length."""

    __slots__ = ()


class RecordsExtractor(ListedExtractor):
    """Reads JSON and JSON Lines."""

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        text, encoding = decode(document.content)
        warnings = list(replaced(document.content, text, encoding))
        builder = TextBuilder()
        title: str | None = None
        if media_type == "application/jsonl":
            records, problems = _read_lines(text)
            warnings += problems
            cut = add_value(builder, records)
        else:
            value = _read(text)
            title = _title(value)
            cut = add_value(builder, value)
        warnings += [f"{counted(cut, 'path is', 'paths are')} written without the beginning"] if cut else []
        extraction = builder.build(
            title=title,
            metadata={},
            media_type=media_type,
            extractor=self.id,
            warnings=warnings,
        )
        if not extraction.text:
            raise SkippedDocument("no-text", "the data holds no values")
        return extraction


def parse_json(text: str) -> Any:
    """Parse any JSON value: objects as tuples of pairs, numbers as written.

    Raises:
        TooDeepError: the value is nested too deeply; a subclass of `ValueError`.
        ValueError: the text is not JSON.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=tuple,
            parse_int=Literal,
            parse_float=Literal,
            parse_constant=Literal,
        )
    except RecursionError as error:
        raise TooDeepError("nested too deeply") from error


def _read(text: str) -> Any:
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and (records := _all_lines(text)) is not None:
            return records
        raise BrokenDocument(
            "damaged", f"not JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        ) from error
    except TooDeepError as error:
        raise BrokenDocument("too-deep", "its arrays and objects are nested too deeply to be read") from error
    except ValueError as error:
        raise BrokenDocument("damaged", f"not readable JSON: {error}") from error


def _all_lines(text: str) -> list[Any] | None:
    """Return the records if this is JSON Lines in a file named as JSON."""
    try:
        return [parse_json(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return None


def _read_lines(text: str) -> tuple[list[Any], list[str]]:
    records: list[Any] = []
    bad: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(parse_json(line))
        except ValueError:
            bad.append(number)
    if bad and not records:
        raise BrokenDocument("damaged", "no line of it is JSON")
    if not bad:
        return records, []
    named = ", ".join(map(str, bad[:_MAX_NAMED_LINES])) + (", ..." if len(bad) > _MAX_NAMED_LINES else "")
    return records, [f"lines that are not JSON were left out, {len(bad)} of {len(bad) + len(records)}: {named}"]


def _title(value: Any) -> str | None:
    if not isinstance(value, tuple):
        return None
    for name in ("title", "name"):
        for key, inner in value:
            if key.lower() == name and isinstance(inner, str) and not isinstance(inner, Literal) and len(inner) <= 200:
                return str(inner)
    return None


# --- writing


def add_value(builder: TextBuilder, value: Any) -> int:
    """Append a parsed value: arrays of flat objects as tables, everything else as lines of `path: value`.

    Args:
        builder: receives the text.
        value: a value returned by `parse_json`.

    Returns:
        The number of paths shortened to their end.
    """
    lines: list[str] = []
    paths = _Paths()

    def end_block() -> None:
        builder.text("\n".join(lines))
        lines.clear()

    # Each entry is a path, the key below it, and the value; None as the path ends a block. An explicit stack has no
    # depth limit.
    left: list[tuple[str | None, str | int, Any]] = [("", "", value)]
    while left:
        above, key, current = left.pop()
        if above is None:
            end_block()
            continue
        path = paths.joined(above, key)
        if isinstance(current, tuple) and current:
            left.append((None, "", None))
            left.extend((path, key, inner) for key, inner in reversed(current))
        elif isinstance(current, list) and current:
            if all(_is_scalar(item) for item in current):
                _add_scalars(builder, lines, path, current)
            elif (rows := as_table(current)) is not None:
                end_block()
                if path:
                    builder.text(f"{path}:")
                builder.table(rows)
            else:
                left.extend((path, place, current[place]) for place in reversed(range(len(current))))
        elif _is_scalar(current):
            _add_scalar(builder, lines, path, current)
    end_block()
    return paths.cut


class _Paths:
    """Builds paths of values, which may repeat no more than a share of the document's allowed characters."""

    def __init__(self) -> None:
        allowed = allowance.current()
        self.cut = 0
        self._left = math.inf if allowed is None else _PATH_SHARE * allowed.characters

    def joined(self, above: str, key: str | int) -> str:
        """Return the path of a value: that of its container plus its key or its 0-based index in an array."""
        if isinstance(key, int):
            path = f"{above}[{key}]"
        elif above or key:
            shown = " ".join(key.split()) or '""'
            path = f"{above}.{shown}" if above else shown
        else:
            return ""
        most = _PATH_CHARACTERS if self._left > 0 else _SHORT_PATH_CHARACTERS
        self._left -= min(most, len(path))
        if len(path) <= most:
            return path
        self.cut += 1
        return f"…{path[-most:]}"


def as_table(items: Sequence[Any]) -> list[list[str]] | None:
    """Return flat objects with shared keys as rows below a header; None for other values."""
    if len(items) < 2:
        return None
    names: dict[str, int] = {}
    filled = characters = 0
    for item in items:
        if not isinstance(item, tuple) or not item or not all(_is_scalar(inner) for _, inner in item):
            return None
        if len({key for key, _ in item}) < len(item):
            return None
        for key, inner in item:
            names.setdefault(key, len(names))
            shown = _shown(inner)
            if "\n" in shown.strip():
                return None
            characters += len(shown)
        filled += len(item)
        if len(names) > _MAX_TABLE_COLUMNS:
            return None
    if filled < len(items) * len(names) / 2 or characters / len(items) > TABLE_BLOCK_CHARACTERS / 2:
        return None
    rows = [list(names)]
    for item in items:
        row = [""] * len(names)
        for key, inner in item:
            row[names[key]] = _shown(inner)
        rows.append(row)
    return rows


def _is_scalar(value: Any) -> bool:
    return value is None or value == () or value == [] or isinstance(value, str | bool)


def _shown(value: Any) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    # Records of logs have what a program printed.
    return as_shown(value) if isinstance(value, str) else ""


def _add_scalar(builder: TextBuilder, lines: list[str], path: str, value: Any) -> None:
    shown = _shown(value)
    if not shown.strip():
        return
    if not path:
        lines.append(shown)
    elif len(shown) > _LINE_CHARACTERS or "\n" in shown.strip():
        # The text is separate, with paragraphs of its own.
        builder.text("\n".join(lines))
        lines.clear()
        builder.text(f"{path}:\n{shown.strip()}")
    else:
        lines.append(f"{path}: {shown.strip()}")


def _add_scalars(builder: TextBuilder, lines: list[str], path: str, values: Sequence[Any]) -> None:
    shown = [_shown(value).strip() for value in values]
    short = all(len(one) <= _LINE_CHARACTERS and "\n" not in one for one in shown)
    if short and sum(map(len, shown)) <= 4 * _LINE_CHARACTERS:
        _add_scalar(builder, lines, path, ", ".join(filter(None, shown)).replace("\n", " "))
        return
    builder.text("\n".join(lines))
    lines.clear()
    if path:
        lines.append(f"{path}:")
    if short and all(isinstance(value, Literal) for value in values):
        lines.append(", ".join(shown))
    else:
        lines.extend(f"- {one}" for one in shown if one)
    builder.text("\n".join(lines))
    lines.clear()
