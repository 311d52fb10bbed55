"""Suggestions for unknown commands and options: other tools' names for them, and similar spellings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from typer.core import TyperGroup

_OTHER_NAMES = {
    "add": ("create", "insert", "put", "upload"),
    "delete": ("remove", "rm"),
    "doctor": ("check", "fsck", "validate", "verify"),
    "documents": ("docs", "files", "list", "ls"),
    "entries": ("facts", "memories"),
    "eval": ("benchmark", "evaluate"),
    "history": ("log", "runs", "versions"),
    "list": ("ls", "show"),
    "init": ("config", "configure", "new", "setup"),
    "plan": ("diff", "dry-run", "estimate"),
    "reindex": ("rebuild", "reembed"),
    "refresh": ("build", "crawl", "index", "ingest", "load", "run", "scan", "sync", "update"),
    "remove": ("del", "delete", "drop", "rm"),
    "restore": ("revert", "rollback"),
    "search": ("ask", "find", "grep", "query", "retrieve"),
    "serve": ("api", "http", "server"),
    "show": ("cat", "get", "view"),
    "status": ("info", "stats"),
}
"""command -> names for it in other tools"""
_ELSEWHERE = {
    "chat": "answers are passages, not replies; `parquetry search` finds them",
    "deploy": "`python -m parquetry.deployments` puts schedules on a Prefect server, see docs/deployments.md",
    "help": "--help goes after a command, too: `parquetry search --help`",
    "schedule": "a source has its `schedule` in the settings file, see docs/deployments.md",
    "version": "run `parquetry --version`",
}
"""name of a missing command -> hint at its substitute"""
_OTHER_OPTIONS = {
    "-k": ("-n", "--count", "--limit", "--n-results", "--num-results", "--top", "--top-k", "--topk"),
    "--config": ("--settings", "-c"),
    "--corpus": ("--database", "--db", "--index", "--store"),
    "--json": ("--format", "--output"),
    "--namespace": ("--collection", "--knowledge-base"),
    "--verbose": ("--debug",),
    "--where": ("--filter",),
    "--yes": ("--force", "-f", "-y"),
}
"""option -> names for it in other tools"""


class Commands(TyperGroup):
    """Command group that suggests alternatives for an unknown command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments begin with.

        Raises:
            UsageError: the command does not exist; the message suggests alternatives.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(no_such_command(name, list(self.commands), ctx.command_path))
        return super().resolve_command(ctx, args)


def no_such_command(name: str, known: Sequence[str], program: str = "parquetry") -> str:
    """Build the message for an unknown command, with suggestions.

    Args:
        name: name as typed.
        known: names of the existing commands.
        program: name of the program.
    """
    problem = f"No such command {name!r}"
    if name.casefold() in _ELSEWHERE:
        return f"{problem}: {_ELSEWHERE[name.casefold()]}"
    return problem + _meant([f"`{program} {each}`" for each in _candidates(name, known, _OTHER_NAMES)])


def no_such_option(name: str, known: Sequence[str]) -> str:
    """Build the message for an unknown option, with suggestions.

    Args:
        name: option as typed, with its dashes.
        known: options of the command.
    """
    return f"No such option: {name}" + _meant(_candidates(name, known, _OTHER_OPTIONS))


def _candidates(name: str, known: Sequence[str], others: dict[str, tuple[str, ...]]) -> list[str]:
    renamed = [each for each, theirs in others.items() if name.casefold() in theirs and each in known]
    return renamed or get_close_matches(name.casefold(), known, n=2)


def _meant(candidates: Iterable[str]) -> str:
    named = " or ".join(candidates)
    return f"; did you mean {named}?" if named else ""
