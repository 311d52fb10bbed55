r"""The one way to the terminal, by which nothing gets there that a terminal obeys, hides or takes for another line.

Documents come from strangers, and so do their names, titles, members and the words of services. What is no plain text
in them is shown as `\u{1b}`: the number of the character in braces, as in Rust, Swift and JavaScript. See
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

_OBEYED = (
    # Controls, of the upper half too; what ends a line; embeddings, overrides and isolates of direction; halves of
    # characters, as which Python holds bytes that are not UTF-8.
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
)
_TAGS = r"\U000e0000-\U000e007f"
_UNSEEN = (
    # What Unicode calls "default ignorable", and marks of direction and of annotations.
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_JOINERS = r"\u200c\u200d"
_SELECTORS = r"\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_JOINED = r"\xa9\xae\u0590-\u180a\u1810-\u1dff\u203c\u2049\u2070-\ufdff\ufe10-\uffff\U00010000-\U000dffff"
"""after which joiners and selectors have a meaning: scripts from Hebrew on, and symbols"""
_FLAG = r"\U0001f3f4[\U000e0020-\U000e007e]{1,6}\U000e007f"
_KEYCAP = r"[0-9#*]\ufe0f\u20e3"
_IN_TEXT = re.compile(rf"(?P<plain>{_FLAG})|[{_OBEYED}{_TAGS}]")
_IN_LINE = re.compile(
    rf"(?P<plain>{_FLAG}|{_KEYCAP})|[\t\n{_OBEYED}{_TAGS}{_UNSEEN}]"
    rf"|(?<![{_JOINED}\ufe0f])[{_JOINERS}]|(?<![{_JOINED}])[{_SELECTORS}]"
    # What only looks like the sign for another character.
    r"|\\(?=u\{[0-9a-f]{1,6}\})"
)
_IN_JSON = re.compile(rf"[\x7f{_OBEYED}{_TAGS}{_UNSEEN}{_JOINERS}{_SELECTORS}]")
_ONE_LINE_LOGS = ("parquetry", "prefect.flow_runs", "prefect.task_runs")
"""whose messages have one line each"""


def visible(text: str) -> str:
    r"""One line, in which `\u{1b}` stands for what a terminal obeys or hides, and `\u{a}` for the end of a line.

    Different texts stay different: a backslash that begins such a sign itself is `\u{5c}`.
    """
    return _IN_LINE.sub(_sign, text)


def visible_text(text: str) -> str:
    """A text of many lines, with its line ends and tabs, and what has no width but does no harm in prose."""
    return _IN_TEXT.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    return found["plain"] or f"\\u{{{ord(found[0]):x}}}"


def json_text(value: Any, indent: int | None = None) -> str:
    r"""JSON that parses to the same value, with everything as `\u001b` that a terminal would obey or hide."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)


def tell(line: str = "", *, err: bool = False) -> None:
    """Print one line, whatever is in it.

    Args:
        line: without its end.
        err: print it on stderr.
    """
    _write(f"{visible(line)}\n", err=err)


def tell_wrapped(text: str, width: int, *, first: str = "", hanging: str = "", long_words: bool = True) -> None:
    """Print what is one line, over as many as it takes.

    Args:
        text: to be wrapped; all its white space counts as blanks, but for the ends of lines.
        width: characters.
        first: stands before the first line.
        hanging: stands before the others.
        long_words: break words that are longer than a line.
    """
    lines = textwrap.wrap(
        visible(text), width, initial_indent=first, subsequent_indent=hanging, break_long_words=long_words
    )
    _write("".join(f"{line}\n" for line in lines or [first]))


def tell_text(text: str, *, err: bool = False) -> None:
    """Print a text that may have many lines, as that of a document."""
    _write(f"{visible_text(text)}\n", err=err)


def tell_json(value: Any, indent: int | None = None) -> None:
    """Print a value as JSON."""
    _write(f"{json_text(value, indent)}\n")


def _write(text: str, *, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    stream.write(text)
    stream.flush()


class VisibleRecord(logging.LogRecord):
    """A record whose message is fit for a terminal, by whatever handler and format it gets there."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        if self.exc_info and self.exc_info[0] is not None:
            # Formatters take what is here already.
            self.exc_text = visible_text("".join(traceback.format_exception(*self.exc_info))).rstrip("\n")

    def getMessage(self) -> str:  # noqa: N802 - the name that logging gives it
        said = super().getMessage()
        return visible(said) if self.name.startswith(_ONE_LINE_LOGS) else visible_text(said)
