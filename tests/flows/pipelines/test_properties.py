"""Laws of the incremental refresh, over random histories of a folder."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from parquetry.serving.search.service import SearchRequest
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

QUERIES = ("days of leave", "the planer in hall two", "oak and beech", "who signs an order")
WORDS = ("leave", "oak", "beech", "planer", "hall", "order", "sign", "days", "Monday", "blade", "glue", "two")

names = st.sampled_from(["a.md", "b.md", "c.txt", "deep/d.md", "deep/e.txt"])
sentences = st.lists(st.sampled_from(WORDS), min_size=3, max_size=12).map(
    lambda words: " ".join(words).capitalize() + "."
)
texts = st.lists(sentences, min_size=1, max_size=8).map("\n\n".join)
steps = st.one_of(
    st.tuples(st.just("write"), names, texts),
    st.tuples(st.just("append"), names, sentences),
    st.tuples(st.just("move"), names, names),
    st.tuples(st.just("touch"), names),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("refresh")),
)


def apply(workshop: Workshop, step: tuple[Any, ...]) -> None:
    kind, *arguments = step
    if kind == "refresh":
        workshop.refresh(allow_removals=True)
        return
    file = workshop.folder / arguments[0]
    if kind == "write":
        workshop.write(arguments[0], arguments[1])
    elif not file.exists():
        return
    elif kind == "append":
        workshop.write(arguments[0], file.read_text() + "\n\n" + arguments[1])
    elif kind == "move":
        target = workshop.folder / arguments[1]
        target.parent.mkdir(exist_ok=True)
        file.rename(target)
    elif kind == "touch":
        workshop.touch(arguments[0])
    else:
        file.unlink()


def state(workshop: Workshop) -> dict[str, Any]:
    """Return everything visible to a reader except values that differ by nature: revisions, runs and times."""
    reader = workshop.reader()
    documents = {
        path: (
            row.document_id,
            row.status,
            row.content_hash,
            row.title,
            row.fingerprint,
            row.chunks,
            row.tokens,
            row.etag,
        )
        for path, row in workshop.rows().items()
    }
    chunks = reader.connection.execute(
        """SELECT chunk_id, uri, start, "end", page, headings, text, text_hash, embedder, vector::VARCHAR
        FROM chunks ORDER BY chunk_id"""
    ).fetchall()
    texts = reader.connection.execute("SELECT document_id, text, vector::VARCHAR FROM texts ORDER BY 1").fetchall()
    requests = [SearchRequest(query, mode, 10) for query in QUERIES for mode in ("vector", "text", "hybrid")]
    # A search of a corpus that was never published is refused.
    found = [reader.search(request).hits if reader.snapshot.version else () for request in requests]
    answers = [[(hit.row["chunk_id"], round(hit.score, 9)) for hit in hits] for hits in found]
    return {"documents": documents, "chunks": chunks, "texts": texts, "answers": answers}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(history=st.lists(steps, min_size=3, max_size=14))
@example(history=[("touch", "a.md")])
@example(history=[("write", "a.md", "Oak and beech."), ("refresh",), ("delete", "a.md")])
def test_incremental_refresh_equals_a_rebuild(history):
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder))
        workshop.sections["chunking"] = {"size": 80, "overlap": 10}
        for step in history:
            apply(workshop, step)
        workshop.refresh(allow_removals=True)
        incremental = state(workshop)

        assert {change.effort for change in workshop.plan().changes} <= {"nothing"}, (
            "the plan of a refreshed corpus is empty"
        )
        again = workshop.refresh()
        assert (again.version, again.work.chunks_embedded) == (again.version_before, 0), "a refresh is idempotent"

        workshop.sections["corpus"] = {"root": str(workshop.root / "rebuilt")}
        workshop.refresh()
        assert state(workshop) == incremental
