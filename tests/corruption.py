"""A corpus with rows in every table, ways to damage its files, and snapshots of its content for comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_snapshot
from tests.storage.notebook import ASH, ELM, OAK, Notebook
from tests.workshop import Workshop

FLIPS = 3
"""damaged places in each file"""
_STATE = {
    "documents": "SELECT path, content_hash, status, title, visibility, chunks FROM documents",
    "chunks": """SELECT filename, chunk_index, start, "end", text, tokens, vector::FLOAT[] FROM chunks""",
    "texts": "SELECT filename, text, vector::FLOAT[] FROM texts",
    "entries": "SELECT entry_id, kind, text, confidence, sessions FROM entries",
    "history of entries": "SELECT DISTINCT entry_id, text FROM entry_history",
    "decisions": "SELECT decision_id, kind, text FROM decisions",
    "notes": "SELECT filename, stage, note FROM notes",
    "runs": "SELECT run_id, kind, added, changed FROM runs",
    "failures": "SELECT uri, reason FROM failures",
    "searches": "SELECT query FROM searches",
}


def make_corpus(root: Path) -> Workshop:
    """Publish documents, entries, notes, failures and searches four times; remove one document again."""
    workshop = Workshop(root)
    workshop.write("oak.md", "# Oak\n\nThe oak is dried in a kiln. " * 40)
    workshop.write("elm.md", "The elm is sawn wet. " * 40)
    workshop.write("open.csv", 'tree,state\n"oak,dry\n' + "elm,wet\n" * 250)
    workshop.write("cut.pdf", b"%PDF-1.7 cut")
    workshop.write("gone.md", "The ash bends. " * 40)
    workshop.refresh()
    workshop.write("oak.md", "# Oak\n\nThe oak is steamed and bent. " * 40)
    (workshop.folder / "gone.md").unlink()
    workshop.refresh(allow_removals=True)
    lake = workshop.lake
    embedder = workshop.rows()["oak.md"].embedder
    notebook = Notebook(SimpleNamespace(lake=lake, connect=lambda: connect_snapshot(lake.snapshot())))
    notebook.learn(OAK, ELM, embedder=embedder)
    notebook.learn(ASH, embedder=embedder)
    workshop.sections["search"] = {"record_searches": True}
    with closing(workshop.reader()) as reader:
        reader.search(SearchRequest("kiln"))
    del workshop.sections["search"]
    workshop.write("fir.md", "The fir is light. " * 40)
    workshop.refresh()
    return workshop


def state(root: str | Path) -> dict[str, set[tuple[Any, ...]]]:
    """Return the content of a corpus, by table."""
    with connect_snapshot(Lake(str(root)).snapshot()) as connection:
        return {name: set(map(_frozen, connection.execute(sql).fetchall())) for name, sql in _STATE.items()}


def _frozen(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)


def answers(settings: Any) -> list[tuple[str, float]]:
    """Return the results of a few searches."""
    with closing(Reader(settings)) as reader:
        found = []
        for query in ("kiln", "steamed and bent", "light wood"):
            found += [(hit.row["text"], round(hit.score, 4)) for hit in reader.search(SearchRequest(query)).hits]
        return found


def files_of(corpus: Path) -> list[Path]:
    """Return all files of a corpus except locks and leases, which are empty."""
    return sorted(file for file in corpus.rglob("*") if file.is_file() and file.suffix not in (".lock", ".lease"))


def damages(file: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Return ways to damage a file, each with the function that does it."""
    content = file.read_bytes()
    yield "deleted", file.unlink
    yield "emptied", lambda: file.write_bytes(b"")
    yield "halved", lambda: file.write_bytes(content[: len(content) // 2])
    for number in range(FLIPS):
        place = (2 * number + 1) * len(content) // (2 * FLIPS)

        def flip(place: int = place, bit: int = number * 3 % 8) -> None:
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            file.write_bytes(flipped)

        yield "flipped", flip


def kind_of(file: Path, corpus: Path) -> str:
    """Return a readable name for the kind of a corpus file."""
    table, *inner = file.relative_to(corpus).parts
    if table == "index":
        return "search index"
    if file.suffix == ".copy":
        return f"{table}: copy of a commit"
    return f"{table}: {'commit' if len(inner) == 2 else 'shard'}"
