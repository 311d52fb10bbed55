"""`parquetry analyze`: compare all documents of a corpus."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.options import ConfigOption, CorpusOption, JsonOption, settings_for
from parquetry.serving.cli.output import print_json
from parquetry.storage.lake.lake import Lake


def analyze(
    again: Annotated[bool, typer.Option("--again", help="Analyze a version that has been analyzed, too.")] = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find duplicates and what was read badly; draw the map.

    The dashboard shows the outcome under Quality and Map. It is kept beside the search index and can be deleted
    without loss. The map needs the extra `map`.
    """
    from parquetry.storage.analysis.analyze import analyze

    settings = settings_for(config, corpus)
    done = analyze(Lake(settings.corpus.root).snapshot(), settings.search, again=again)
    if as_json:
        print_json(asdict(done))
        return
    had = "" if done.is_new else " was analyzed before"
    tell(f"Corpus {settings.corpus.root}, version {done.version}{had}: {counted(done.documents, 'document')}.")
    tell(
        f"{done.incomplete} of them incomplete or doubtful, {done.duplicates} duplicates, "
        f"{done.near_duplicates} near-duplicates; {done.placed} on the map."
    )
    for note in done.notes:
        tell(f"  {note}")
