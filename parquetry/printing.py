r"""Terminal output, free of characters that control the terminal, are invisible or break lines.

Documents are untrusted, and so are their names, titles, members and the messages of services. Everything in them that
is not plain text is shown as `\u{1b}`: the number of the character in braces, as in Rust, Swift and JavaScript. See
docs/decisions/0026-visible-characters.md.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import textwrap
import traceback
from typing import Any

from parquetry.lazy_patterns import lazy_pattern

_OBEYED = (
    # Controls, of the upper half too; line ends; embeddings, overrides and isolates of direction; halves of characters,
    # in which form Python holds bytes that are not UTF-8.
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
)
_TAGS = r"\U000e0000-\U000e007f"
_UNSEEN = (
    # Unicode's "default ignorable" characters, and marks of direction and of annotations.
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_JOINERS = r"\u200c\u200d"
_SELECTORS = r"\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINED = r"\xa9\xae\u0590-\u180a\u1810-\u1dff\u203c\u2049\u2070-\ufdff\ufe10-\uffff\U00010000-\U000dffff"
"""characters after which joiners and selectors have a meaning: scripts from Hebrew on, and symbols"""
_FLAG = r"\U0001f3f4[\U000e0020-\U000e007e]{1,6}\U000e007f"
_KEYCAP = r"[0-9#*]\ufe0f\u20e3"
_IN_TEXT = re.compile(rf"(?P<plain>{_FLAG})|[{_OBEYED}{_TAGS}]")
_IN_LINE = lazy_pattern(
    rf"(?P<plain>{_FLAG}|{_KEYCAP})|[\t\n{_OBEYED}{_TAGS}{_UNSEEN}]"
    rf"|(?<![{_JOINED}\ufe0f])[{_JOINERS}]|(?<![{_JOINED}])[{_SELECTORS}]"
    # Text that only looks like the escape of another character.
    r"|\\(?=u\{[0-9a-f]{1,6}\})"
)
_LINE_ENDS = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_NOT_TEXT = lazy_pattern(
    rf"(?P<plain>{_FLAG}|{_KEYCAP})|[{_OBEYED}{_TAGS}{_UNSEEN}]|(?<![{_JOINED}\ufe0f])[{_JOINERS}]"
    rf"|(?<![{_JOINED}])[{_SELECTORS}]"
)
_IN_JSON = re.compile(rf"[\x7f{_OBEYED}{_TAGS}{_UNSEEN}{_JOINERS}{_SELECTORS}]")
_ONE_LINE_LOGS = ("parquetry", "prefect.flow_runs", "prefect.task_runs")
"""loggers with one line per message"""


def visible(text: str) -> str:
    r"""Return one line, with `\u{1b}` for a terminal control or invisible character, and `\u{a}` for a line end.

    Different texts stay different: a backslash that begins such an escape is itself `\u{5c}`.
    """
    if text.isascii() and text.isprintable() and "\\u{" not in text:
        return text
    return _IN_LINE.sub(_sign, text)


def visible_text(text: str) -> str:
    """Return a text of many lines, keeping line ends, tabs, and zero-width characters that are harmless in prose."""
    return _IN_TEXT.sub(_sign, text)


def plain_text(text: str) -> str:
    """Return a text of many lines without control and invisible characters, for readers who would not see them."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _NOT_TEXT.sub(lambda found: found["plain"] or "", _LINE_ENDS.sub("\n", text))


def _sign(found: re.Match[str]) -> str:
    return found["plain"] or f"\\u{{{ord(found[0]):x}}}"


def json_text(value: Any, indent: int | None = None) -> str:
    r"""Return JSON that parses to the same value, with terminal control and invisible characters as `\u001b`."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isascii() and text.isprintable():
        return text
    return _IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)


def tell(line: str = "", *, err: bool = False) -> None:
    """Print one line, with unsafe characters escaped.

    Args:
        line: without its end.
        err: print it on stderr.
    """
    _write(f"{visible(line)}\n", err=err)


def tell_wrapped(text: str, width: int, *, first: str = "", hanging: str = "", long_words: bool = True) -> None:
    """Print one line, wrapped to a width.

    Args:
        text: to be wrapped; all its white space counts as blanks, except line ends.
        width: characters.
        first: prefix of the first line.
        hanging: prefix of the others.
        long_words: break words that are longer than a line.
    """
    lines = textwrap.wrap(
        visible(text), width, initial_indent=first, subsequent_indent=hanging, break_long_words=long_words
    )
    _write("".join(f"{line}\n" for line in lines or [first]))


def tell_text(text: str, *, err: bool = False) -> None:
    """Print a text that may have many lines, such as a document's."""
    _write(f"{visible_text(text)}\n", err=err)


def tell_json(value: Any, indent: int | None = None) -> None:
    """Print a value as JSON."""
    _write(f"{json_text(value, indent)}\n")


def _write(text: str, *, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    stream.write(text)
    stream.flush()


class VisibleRecord(logging.LogRecord):
    """Log record with a message safe for a terminal, for any handler and format."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        if self.exc_info and self.exc_info[0] is not None:
            # Formatters use an existing `exc_text`.
            self.exc_text = visible_text("".join(traceback.format_exception(*self.exc_info))).rstrip("\n")

    def getMessage(self) -> str:  # noqa: N802 - the name that logging gives it
        said = super().getMessage()
        return visible(said) if self.name.startswith(_ONE_LINE_LOGS) else visible_text(said)
