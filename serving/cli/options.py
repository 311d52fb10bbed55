"""Options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from parquetry.settings.base import HIGHEST_BUDGET
from parquetry.settings.sections import Settings, load_settings, override

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings file; default: parquetry.toml, if it exists.")
]
CorpusOption = Annotated[
    str | None, typer.Option("--corpus", metavar="ROOT", help="Folder of the corpus; default: ./corpus.")
]
NamespaceOption = Annotated[str | None, typer.Option("--namespace", metavar="NAME", help="One part of the corpus.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Print more details.")]
MOST_RESULTS = 10_000
"""maximum number of results of a search"""
MOST_CONTEXT = 1_000
"""maximum number of chunks before and after a result"""
MOST_ROWS = 1_000_000
"""maximum number of rows of a list"""
BudgetOption = Annotated[
    float | None,
    typer.Option(
        "--budget", metavar="USD", min=0, max=HIGHEST_BUDGET, help="What this run may spend; default: the settings."
    ),
]
VersionOption = Annotated[
    str | None,
    typer.Option("--version", metavar="N|TAG", help="Read the corpus as of this version (see `history`, `tag`)."),
]


def settings_for(config: Path | None, corpus: str | None, **budgets: float | None) -> Settings:
    """Load the settings of a command: the file, overridden by the command line.

    Args:
        config: settings file.
        corpus: root of the corpus.
        budgets: section -> US dollars that its runs may spend.

    Raises:
        SettingsError: as for `load_settings`.
    """
    given: dict[str, dict[str, Any]] = {} if corpus is None else {"corpus": {"root": corpus}}
    given |= {section: {"budget_usd": budget} for section, budget in budgets.items() if budget is not None}
    settings = load_settings(config)
    return override(settings, given) if given else settings
