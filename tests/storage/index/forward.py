"""Steps that change a corpus and bring its index forward, and what searches of it return."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from parquetry.model import Access
from parquetry.storage.index.check import disagreements
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.open_index import in_memory
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Searcher

WORDS = ["oak", "elm", "running", "runs", "SR-2031-007", "--dry-run", "snake_case", "漢字", "the", "Öl"]
AXIS = np.array([1, 0.5, -0.25, 0.1], np.float32)


def folder(shelf):
    return IndexFolder(shelf.lake.layout, shelf.settings)


def refresh(shelf):
    return folder(shelf).refresh(shelf.lake.snapshot())


def answers(connection, search=None, memory=None):
    """Return everything that searches of every kind return."""
    searcher = Searcher(connection, Filters(), search, memory)
    found = []
    for mode in ("text", "vector", "hybrid"):
        for query in WORDS:
            hits = searcher.search(query, {"model@4": AXIS}, mode, 7)
            found += [(mode, query, hit.row["chunk_id"], hit.row["text"], hit.score, dict(hit.scores)) for hit in hits]
    return found


def texts(seed):
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS, k=generator.randint(1, 9))) for _ in range(generator.randint(1, 4))]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "remove", "permit", "retitle", "skip-index"]),
        st.integers(0, 4),
        st.integers(0, 99),
    ),
    min_size=1,
    max_size=8,
)


def bring_forward(shelf, steps):
    """Take steps, and compare the index with one built anew."""
    shelf.publish({"first.md": ["oak and elm"]})
    refresh(shelf)
    for action, name, seed in steps:
        path = f"{name}.md"
        present = [row for row in shelf.rows() if row.path == path]
        if action == "write":
            shelf.publish({path: texts(seed)})
        elif action == "remove" and present:
            shelf.remove(path)
        elif action == "permit" and present:
            shelf.permit(path, Access("individual", user_id="ada"))
        elif action == "retitle" and present:
            retitled = [replace(row, title=WORDS[seed % len(WORDS)]) for row in present]
            shelf.lake.publish(shelf.lake.snapshot(), retitled, f"retitle-{path}")
        if action != "skip-index":
            refresh(shelf)
    opened = folder(shelf).open(shelf.lake.snapshot())
    anew = in_memory(shelf.lake.snapshot(), shelf.settings.language)
    assert answers(opened.connection) == answers(anew.connection)
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (shelf.lake.snapshot().version, [])
    opened.close()
    anew.close()
