"""Checks that apply to the arguments of every command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

_OF_ANY_BYTES = frozenset({"config", "dataset", "file", "queries", "target", "targets"})
"""arguments that name files, whose names may hold any bytes the system allows"""

_FORMER_NAMES = {"--what": "--type", "--widest": "--max-visibility"}
"""former spellings of options, still understood"""


class Command(TyperCommand):
    """Command that rejects invalid text in its arguments with one line, before it opens anything."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, with former spellings of options replaced."""
        known = {option for parameter in self.params for option in parameter.opts}
        end = args.index("--") if "--" in args else len(args)
        for place, each in enumerate(args[:end]):
            name, equals, value = each.partition("=")
            if (now := _FORMER_NAMES.get(name)) in known:
                args[place] = f"{now}{equals}{value}"
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        check_arguments(ctx)
        return super().invoke(ctx)


def check_arguments(context: typer.Context) -> None:
    """Reject arguments that are not valid text.

    Raises:
        BadParameter: an argument holds a NUL, or bytes that are not UTF-8.
    """
    for parameter in context.command.params:
        for text in _texts(context.params.get(str(parameter.name))):
            if problem := _problem(str(parameter.name), text):
                raise typer.BadParameter(problem, ctx=context, param_hint=_named(parameter))


def _named(parameter: Any) -> str:
    return f"'{parameter.opts[0] if parameter.opts[0].startswith('-') else parameter.metavar or parameter.name}'"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _problem(name: str, text: str) -> str | None:
    if "\0" in text:
        return "it holds a NUL character; leave it out"
    if name not in _OF_ANY_BYTES and not _is_unicode(text):
        shown = "".join(letter if _is_unicode(letter) else f"\\x{ord(letter) & 0xFF:02x}" for letter in text[:60])
        return f"{shown} is not UTF-8; write such a byte of a document's name as `parquetry documents` shows it"
    return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
