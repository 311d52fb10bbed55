"""Options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
VersionOption = Annotated[
    int | None, typer.Option("--version", metavar="N", help="Read the corpus as of this version (see `history`).")
]


def settings_for(config: Path | None, corpus: str | None) -> Settings:
    """Load the settings of a command: the file, overridden by the command line.

    Raises:
        SettingsError: as for `load_settings`.
    """
    settings = load_settings(config)
    return settings if corpus is None else override(settings, {"corpus": {"root": corpus}})
