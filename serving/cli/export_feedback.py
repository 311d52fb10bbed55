"""Judgements of users beside an exported collection, as the queries and relevance judgements of BEIR."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from parquetry.errors import SettingsError, StorageError
from parquetry.serving.cli.eval_feedback import all_feedback
from parquetry.serving.service.relevance_judgements import relevance_judgements
from parquetry.serving.state.folder import private_file, state_place
from parquetry.settings.sections import Settings

_FILES = ("queries.jsonl", "qrels/test.tsv")


@dataclass(frozen=True, slots=True)
class ExportedFeedback:
    """Numbers of what was written."""

    queries: int
    judgements: int


def refuse_existing(folder: Path) -> None:
    """Refuse to replace judgements that were exported before.

    Raises:
        SettingsError: there are some.
    """
    for name in _FILES:
        if (folder / name).exists():
            raise SettingsError(f"{folder / name} exists already; replace it with --overwrite")


def export_feedback(settings: Settings, folder: Path) -> ExportedFeedback:
    """Write `queries.jsonl` and `qrels/test.tsv` beside a `corpus.jsonl`, of the documents in it.

    The questions of users are in them, so the files are readable by their owner alone.

    Args:
        settings: settings with the corpus and the state of its service.
        folder: folder with the exported documents.

    Raises:
        StorageError: the judgements cannot be read, or the files not written.
    """
    try:
        with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
            documents = {json.loads(line)["_id"] for line in lines}
        found = relevance_judgements(all_feedback(state_place(settings)), documents)
        judged = [(query, of_query) for query, of_query in sorted(found.items()) if of_query]
        queries = (
            json.dumps({"_id": f"q{number}", "text": text, "metadata": {"namespace": namespace}}, ensure_ascii=False)
            for number, ((namespace, text), _) in enumerate(judged, 1)
        )
        rows = [
            f"q{number}\t{document}\t{relevant}"
            for number, (_, of_query) in enumerate(judged, 1)
            for document, relevant in sorted(of_query.items())
        ]
        (folder / "qrels").mkdir(exist_ok=True)
        _write(folder / _FILES[0], queries)
        _write(folder / _FILES[1], ["query-id\tcorpus-id\tscore", *rows])
    except OSError as error:
        raise StorageError(f"judgements cannot be written to {folder}: {error}") from error
    return ExportedFeedback(len(judged), len(rows))


def _write(file: Path, lines: Iterable[str]) -> None:
    part = private_file(file.with_name(f"{file.name}.part"))
    part.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    part.replace(file)
