"""The commands in the groups that `parquetry --help` lists, each imported when it is used.

One command needs a part of what all need together; importing all took a third of the time of a search.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from parquetry.freed_memory import keep_little
from parquetry.printing import tell
from parquetry.serving.cli.arguments import Command
from parquetry.serving.cli.quick_imports import quick_imports
from parquetry.serving.cli.suggestions import Commands

GROUPS = {
    "Run": {
        "init": "run_commands.init",
        "plan": "run_commands.plan",
        "refresh": "run_commands.refresh",
        "reindex": "reindex_command.reindex",
        "watch": "watch_command.watch",
        "serve": "serve_command.serve",
        "mcp": "mcp_command.mcp",
        "add": "add_command.add",
        "import": "import_command.import_",
        "sessions": "session_commands.app",
        "token": "token_commands.app",
    },
    "Ask": {
        "search": "search_command.search",
        "sql": "read_commands.sql",
        "export": "export_command.export",
        "eval": "eval_command.evaluate",
        "calibrate": "calibrate_command.calibrate",
    },
    "Look": {
        "status": "status_command.status",
        "documents": "read_commands.documents",
        "chunks": "read_commands.chunks",
        "show": "read_commands.show",
        "history": "history_command.history",
        "costs": "costs_command.costs",
        "batches": "batches_command.batches",
        "analyze": "analyze_command.analyze",
        "tag": "tag_command.tag",
        "entries": "entry_commands.entries",
        "decisions": "entry_commands.decisions",
        "namespaces": "namespace_commands.app",
    },
    "Repair": {
        "doctor": "doctor_command.doctor",
        "restore": "upkeep_commands.restore",
        "undo": "entry_commands.undo",
        "remove": "upkeep_commands.remove",
        "compact": "compact_command.compact",
        "vacuum": "compact_command.vacuum",
        "forget": "forget_command.forget",
    },
}
"""title -> name of each command -> module and function of `parquetry.serving.cli`, or group of commands"""
_RUNS = frozenset({"refresh", "reindex", "add"})
"""commands whose process reads documents, and keeps little memory meanwhile"""
PLACES = {name: place for group in GROUPS.values() for name, place in group.items()}


class Program(Commands):
    """The program: a group of commands that lists them by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 (as Click calls it)
        """Write the list of commands, as every group does, under the titles of `GROUPS`."""
        longest = max(map(len, self.commands))
        width = formatter.width - 6 - longest
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(longest), self.commands[name].get_short_help_str(width)) for name in names]
                )


def application(only: str | None = None) -> typer.Typer:
    """Make the command line.

    Args:
        only: name of the one command that is needed; any other text for all commands.
    """
    app = typer.Typer(
        name="parquetry",
        cls=Program,
        context_settings={"help_option_names": ["-h", "--help"]},
        # Rich takes what stands in brackets for markup of its own, and a third of the width for boxes.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    if only in _RUNS:
        # Their modules import PyArrow, which then takes its memory as it is told.
        keep_little()
    for name in [only] if only in PLACES else PLACES:
        module, _, member = PLACES[name].partition(".")
        with quick_imports():
            found = getattr(import_module(f"parquetry.serving.cli.{module}"), member)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name, cls=Command)(found)
    return app


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        tell(f"parquetry {version('parquetry')}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keeps knowledge bases fresh: documents in, Parquet that answers questions out."""
