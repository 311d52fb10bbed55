"""Suggestions for commands and options that do not exist: what they are called here, or what is spelled like them."""

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
    "refresh": ("build", "crawl", "import", "index", "ingest", "load", "run", "scan", "sync", "update"),
    "remove": ("del", "delete", "drop", "rm"),
    "restore": ("revert", "rollback"),
    "search": ("ask", "find", "grep", "query", "retrieve"),
    "show": ("cat", "get", "view"),
    "status": ("info", "stats"),
}
"""command -> what other tools call it"""
_ELSEWHERE = {
    "chat": "answers are passages, not replies; `parquetry search` finds them",
    "deploy": "`python -m parquetry.deployments` puts schedules on a Prefect server, see docs/deployments.md",
    "help": "--help goes after a command, too: `parquetry search --help`",
    "schedule": "a source has its `schedule` in the settings file, see docs/deployments.md",
    "version": "run `parquetry --version`",
    **dict.fromkeys(
        ("api", "mcp", "serve", "server"),
        "there is no service over HTTP or MCP yet; `parquetry watch` keeps a corpus fresh, and programs search it "
        "with `parquetry search --json` or from Python, see docs/agents.md",
    ),
}
"""what is looked for as a command, and what there is instead"""
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
"""option -> what other tools call it"""


class Commands(TyperGroup):
    """A group of commands that says what may have been meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments begin with.

        Raises:
            UsageError: there is none of that name; the message says what there is.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(no_such_command(name, list(self.commands), ctx.command_path))
        return super().resolve_command(ctx, args)


def no_such_command(name: str, known: Sequence[str], program: str = "parquetry") -> str:
    """Say that there is no such command, and what may have been meant.

    Args:
        name: as it was typed.
        known: the commands that there are.
        program: that they are commands of.
    """
    problem = f"No such command {name!r}"
    if name.casefold() in _ELSEWHERE:
        return f"{problem}: {_ELSEWHERE[name.casefold()]}"
    return problem + _meant([f"`{program} {each}`" for each in _candidates(name, known, _OTHER_NAMES)])


def no_such_option(name: str, known: Sequence[str]) -> str:
    """Say that a command has no such option, and which one may have been meant.

    Args:
        name: as it was typed, with its dashes.
        known: the options of the command.
    """
    return f"No such option: {name}" + _meant(_candidates(name, known, _OTHER_OPTIONS))


def _candidates(name: str, known: Sequence[str], others: dict[str, tuple[str, ...]]) -> list[str]:
    renamed = [each for each, theirs in others.items() if name.casefold() in theirs and each in known]
    return renamed or get_close_matches(name.casefold(), known, n=2)


def _meant(candidates: Iterable[str]) -> str:
    named = " or ".join(candidates)
    return f"; did you mean {named}?" if named else ""
