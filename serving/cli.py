"""The command `parquetry`."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from knowledge.errors import ParquetryError, classify
from serving import read_commands, run_commands, upkeep_commands

app = typer.Typer(
    name="parquetry",
    help="Keeps knowledge bases fresh: documents in, Parquet that answers questions out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
COMMANDS: tuple[Callable[..., None], ...] = (
    run_commands.init,
    run_commands.plan,
    run_commands.refresh,
    run_commands.reindex,
    read_commands.search,
    read_commands.sql,
    read_commands.documents,
    read_commands.chunks,
    read_commands.show,
    read_commands.history,
    upkeep_commands.restore,
    upkeep_commands.remove,
    upkeep_commands.doctor,
)
for command in COMMANDS:
    app.command()(command)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"parquetry {version('parquetry')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keeps knowledge bases fresh: documents in, Parquet that answers questions out."""


def main() -> None:
    """Run the command line; every refusal is one clear line on stderr and the right exit code."""
    try:
        app()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except ParquetryError as error:
        code = _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        code = _fail("interrupted; nothing was published", 130)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        code = _fail(f"{classify(error).detail}; nothing was published", 4)
    _leave(code)


def _leave(code: int) -> None:
    """Exit; after a Prefect run without tearing the interpreter down.

    Prefect's daemon threads keep objects of DuckDB alive to the very end, which its binding layer then reports as
    leaks, a hundred lines on stderr after every run.
    """
    if "prefect" in sys.modules:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _fail(message: str, code: int) -> int:
    """Print an error and return the exit code that goes with it."""
    for line in message.splitlines():
        print(f"parquetry: {line}", file=sys.stderr)  # noqa: T201 - the command's own output
    return code


if __name__ == "__main__":
    main()
