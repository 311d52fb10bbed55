"""Files of queries: one query per line, as text or as a JSON object."""

from __future__ import annotations

import errno
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parquetry.errors import SettingsError
from parquetry.serving.cli.options import MOST_RESULTS
from parquetry.settings.small_file import read_small
from parquetry.storage.search.searcher import Mode

STDIN = "-"
_MAX_BYTES = 64 * 1024 * 1024


class _Line(BaseModel):
    """JSON object on a line of a query file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    query: str
    k: int | None = Field(None, ge=1, le=MOST_RESULTS)
    mode: Mode | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Query from a file."""

    text: str
    k: int
    mode: Mode


def read_queries(file: str, k: int, mode: Mode) -> list[Query]:
    """Read a file of queries; skip empty lines.

    Args:
        file: path, or `-` for stdin. If the first line begins with `{`, every line is a JSON object with `query` and
            optionally `k` and `mode`; otherwise every line is a query.
        k: number of results for queries without their own.
        mode: search mode for queries without their own.

    Raises:
        SettingsError: the file cannot be read, or a line is invalid.
    """
    name = "stdin" if file == STDIN else file
    try:
        text = _stdin() if file == STDIN else read_small(Path(file), _MAX_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise SettingsError(f"queries cannot be read from {name}: {reason}") from error
    # Not `splitlines`, which also splits at characters that a query may hold.
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise SettingsError(f"there is no query in {name}; write one on each line")
    if not lines[0][1].startswith("{"):
        return [Query(line, k, mode) for _, line in lines]
    return [_parsed(line, f"{name}, line {number}", k, mode) for number, line in lines]


def _stdin() -> str:
    text = sys.stdin.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise OSError(errno.EFBIG, f"has more than {_MAX_BYTES} characters")
    return text


def _parsed(line: str, where: str, k: int, mode: Mode) -> Query:
    try:
        found = _Line.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        raise SettingsError(
            f'{where}: {f"{key}: " if key else ""}{message}; write {{"query": "...", "k": 5, "mode": "hybrid"}}'
        ) from error
    return Query(found.query, found.k or k, found.mode or mode)
