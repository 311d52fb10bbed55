"""The command `parquetry`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from knowledge.errors import ParquetryError, classify
from serving import read_commands, run_commands

app = typer.Typer(
    name="parquetry",
    help="Keeps knowledge bases fresh: documents in, Parquet that answers questions out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (run_commands.init, run_commands.plan, run_commands.refresh, run_commands.reindex):
    app.command()(command)
for command in (
    read_commands.search,
    read_commands.sql,
    read_commands.documents,
    read_commands.chunks,
    read_commands.show,
    read_commands.history,
):
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
    except ParquetryError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted; nothing was published", 130)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        _fail(f"{classify(error).detail}; nothing was published", 4)


def _fail(message: str, code: int) -> None:
    for line in message.splitlines():
        print(f"parquetry: {line}", file=sys.stderr)  # noqa: T201 - the command's own output
    sys.exit(code)


if __name__ == "__main__":
    main()
