"""Shared by `python -m parquetry.deployments...`: a refusal is one clear line, and the right exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer
from typer.exceptions import Abort, TyperException

from parquetry.errors import ParquetryError
from parquetry.masked_output import guard_output
from parquetry.masking import masked
from parquetry.printing import tell

_INTERRUPTED = 130


def run_command(function: Callable[..., None], program: str) -> None:
    """Run a command with the arguments of this process, and exit.

    Args:
        function: with the options as its parameters.
        program: how people call it.
    """
    guard_output()
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(function)
    try:
        code = int(app(prog_name=program, standalone_mode=False) or 0)
    except TyperException as error:
        complain(f"{error.format_message().rstrip('.')} (see `{program} --help`)")
        code = 2
    except ParquetryError as error:
        for line in error.lines:
            complain(line)
        code = error.exit_code
    except (KeyboardInterrupt, Abort):
        code = _INTERRUPTED
    sys.exit(code)


def complain(line: str) -> None:
    """Tell in a line on stderr what is wrong."""
    tell(f"parquetry: {masked(line)}", err=True)
