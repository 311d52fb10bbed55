"""Vectors in exports that are text: the numbers that are stored, and nothing that a document says is taken for one."""

import json

import numpy as np
import pytest

from parquetry.storage.exchange import formats
from parquetry.storage.exchange.exporting import export_file
from parquetry.storage.search.filters import Filters
from tests.storage.shelf import Shelf

VECTORS = [[0.0, -1.0, 1.0, -0.0], [1e-8, -3.4e38, 1 / 3, 0.1], [2.0, 1e16, 16777216.0, 1.1754944e-38]]
CHUNKS = [f'"{formats._VECTOR}" {formats._VECTOR}', 'It says "vector": [1, 2].', "Ünïcode\t\\ and\nlines"]


@pytest.fixture
def corpus(tmp_path):
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"oak.md": CHUNKS}, vectors=VECTORS)
    return shelf.lake.snapshot()


def lines(corpus, folder, form):
    path = export_file(corpus, Filters(), folder, form).path
    text = path.read_text("utf-8")
    return text if form == "pgvector" else [json.loads(line) for line in text.splitlines()]


def check(vectors):
    """Check that vectors are those of the corpus to the bit, and that every number is written as one with a point."""
    assert all(type(each) is float for vector in vectors for each in vector)
    assert np.array(vectors, np.float32).tobytes() == np.array(VECTORS, np.float32).tobytes()


@pytest.mark.parametrize(("form", "field"), [("jsonl", "vector"), ("llamaindex", "embedding"), ("qdrant", "vector")])
def test_line_of_a_chunk_has_its_vector_to_the_bit(corpus, tmp_path, form, field):
    rows = lines(corpus, tmp_path, form)
    check([row[field] for row in rows])
    texts = [row["payload"]["text"] if form == "qdrant" else row["text"] for row in rows]
    assert texts == CHUNKS


def test_columns_of_chroma_have_the_vectors_in_order(corpus, tmp_path):
    (columns,) = lines(corpus, tmp_path, "chroma")
    check(columns["embeddings"])
    assert columns["documents"] == CHUNKS


def test_row_of_a_table_has_its_vector_to_the_bit(corpus, tmp_path):
    script = lines(corpus, tmp_path, "pgvector").split("COPY parquetry_chunks FROM stdin;\n")[1]
    check([json.loads(row.rpartition("\t")[2]) for row in script.splitlines()[:-1]])
