"""Entry point shared by `python -m parquetry.deployments...`: one-line errors and exit codes."""

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
        function: command function; its parameters are the options.
        program: name of the program in messages.
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
    """Print an error on one line of stderr."""
    tell(f"parquetry: {masked(line)}", err=True)
