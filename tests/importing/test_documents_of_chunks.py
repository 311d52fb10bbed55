"""Documents from chunks: texts whose spans are the chunks, whatever the dump says about places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.importing.chunk import FieldNames, RejectedRow
from parquetry.importing.documents import document_of
from parquetry.importing.fields import RowReader, rows_of
from parquetry.importing.vectors import VectorChecker
from parquetry.model import Access

READER = RowReader(FieldNames(), None)


def made(*rows):
    """Return the document of some rows, which are about `a.md`."""
    chunks = [READER.chunk({"id": str(number), "path": "a.md", **row}) for number, row in enumerate(rows)]
    return document_of(chunks, np.eye(len(rows), dtype=np.float32), "model@2")


def test_overlapping_chunks_become_the_text_they_were_cut_from():
    text = "The oak table has four legs. It costs 640 euros. It is heavy."
    document = made(
        {"text": text[28:48], "start": 28}, {"text": text[0:34], "start": 0}, {"text": text[48:], "start": 48}
    )
    assert document.text == text
    assert [(chunk.start, chunk.end) for chunk in document.chunks] == [(0, 34), (28, 48), (48, len(text))]
    # The vectors follow their chunks.
    assert document.vectors.argmax(axis=1).tolist() == [1, 0, 2]


def test_chunks_that_contradict_their_places_follow_each_other():
    assert made({"text": "oak oak", "start": 0}, {"text": "elm", "start": 4}).text == "oak oak\n\nelm"
    # Nor does one number make a text of megabytes.
    assert made({"text": "oak", "start": 0}, {"text": "elm", "start": 10**6}).text == "oak\n\nelm"


@given(
    st.lists(
        st.tuples(
            st.text("ab é\n", min_size=1, max_size=9), st.none() | st.integers(0, 40), st.none() | st.integers(0, 3)
        ),
        min_size=1,
        max_size=7,
    )
)
def test_span_of_a_chunk_is_always_the_chunk(pieces):
    rows = [{"text": f"x{text}", "start": start, "page": page} for text, start, page in pieces]
    document = made(*rows)
    assert len(document.chunks) == len(rows)
    for chunk, text in zip(document.chunks, document.texts, strict=True):
        assert document.text[chunk.start : chunk.end] == text
    assert all(0 <= part.start < part.end <= len(document.text) for part in document.parts)


def test_metadata_is_what_all_chunks_agree_on_and_the_rest_is_named():
    document = made(
        {"text": "oak", "metadata": {"author": "Ada", "score": 1}}, {"text": "elm", "metadata": {"author": "Ada"}}
    )
    assert document.facts.metadata == {"author": "Ada"}
    assert document.dropped == {"score"}


@pytest.mark.parametrize(
    ("row", "path", "text"),
    [
        ({"id_": "n", "text": "oak", "metadata": {"file_path": "d/a.md"}, "class_name": "TextNode"}, "d/a.md", "oak"),
        ({"id": "n", "text": "oak", "relationships": {"1": {"node_id": "doc-1"}}}, "doc-1", "oak"),
        ({"id": "n", "document": "oak", "cmetadata": '{"source": "a.md"}'}, "a.md", "oak"),
        ({"ids": "n", "documents": "oak", "metadatas": {"source": "a.md"}}, "a.md", "oak"),
        ({"id": 7, "page_content": "oak", "metadata": None}, "7", "oak"),
        ({"id": "n", "metadata": {"_node_content": '{"text": "oak"}', "ref_doc_id": "None"}}, "n", "oak"),
        ({"id": "\x1b[2J/../../x", "text": "o\x00ak\r\n"}, "\\u{1b}[2J/../../x", "oak\n"),
    ],
)
def test_fields_of_other_stores_are_found(row, path, text):
    chunk = READER.chunk(row)
    assert (chunk.path, chunk.text) == (path, text)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"text": "oak"}, "no-id"),
        ({"id": "n"}, "no-text"),
        ({"id": "n", "text": " \x00 "}, "no-text"),
        ({"id": "n", "text": ["oak"]}, "no-text"),
        ({"id": "https://ada:secret@host/a", "text": "oak"}, "bad-name"),
        ({"id": "n" * 5000, "text": "oak"}, "name-too-long"),
        ({"id": "n", "text": "oak", "visibility": "individual"}, "bad-access"),
        ({"id": "n", "text": "oak", "tags": "policy"}, "bad-access"),
        ({"id": "n", "text": "oak", "metadata": {"score": float("nan")}}, "bad-metadata"),
        ({"id": "n", "text": "x" * 1_000_001}, "too-large"),
    ],
)
def test_unusable_row_has_a_reason(row, reason):
    with pytest.raises(RejectedRow) as caught:
        READER.chunk(row)
    assert caught.value.reason == reason


def test_rows_keep_their_audience_unless_it_is_given():
    row = {"id": "n", "text": "oak", "visibility": "individual", "user_id": "ada"}
    assert READER.chunk(row).facts.access == Access("individual", None, "ada")
    assert RowReader(FieldNames(), Access()).chunk(row).facts.access == Access()


@pytest.mark.parametrize(
    ("metadata", "access", "left"),
    [
        ({"visibility": "individual", "user_id": "ada", "x": 1}, Access("individual", None, "ada"), {"x": 1}),
        ({"visibility": "public", "tags": '["a b", "c"]'}, Access(tags=("a b", "c")), {}),
        (
            {"visibility": "organization", "org_id": "acme", "tags": ["a"]},
            Access("organization", "acme", None, ("a",)),
            {},
        ),
        ({"user_id": "ada", "tags": "any"}, None, {"user_id": "ada", "tags": "any"}),
    ],
)
def test_audience_in_metadata_is_kept_and_names_alone_are_metadata(metadata, access, left):
    """Chroma, LlamaIndex and Qdrant have no other place for it: a private document would become public."""
    facts = READER.chunk({"id": "n", "text": "oak", "metadata": metadata}).facts
    assert (facts.access, facts.metadata) == (access, left)


def test_audience_in_metadata_that_cannot_be_is_refused():
    for metadata in ({"visibility": "internal"}, {"visibility": "individual"}, {"visibility": "public", "tags": "[1"}):
        with pytest.raises(RejectedRow, match="bad-access"):
            READER.chunk({"id": "n", "text": "oak", "metadata": metadata})


def test_row_cannot_pass_for_a_knowledge_entry():
    row = {"id": "n", "text": "oak", "media_type": "application/vnd.parquetry.entry"}
    assert READER.chunk(row).facts.media_type == "text/plain"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "no-vector"),
        ([1.0], "wrong-dimension"),
        ([1.0, float("nan")], "not-finite"),
        ([1.0, 1e400], "not-finite"),
        ([0.0, 0], "zero-vector"),
        ([1.0, "x"], "bad-vector"),
        ([[1.0, 0.0]], "bad-vector"),
        ("[1,", "bad-vector"),
        ("[" * 100_000, "bad-vector"),
        ({"a": 1}, "bad-vector"),
    ],
)
def test_unusable_vector_has_a_reason(value, reason):
    with pytest.raises(RejectedRow) as caught:
        VectorChecker(2).checked(value)
    assert caught.value.reason == reason


def test_vectors_get_length_one_and_keep_their_direction():
    checker = VectorChecker(None)
    assert checker.checked("[0.6, 0.8]").tolist() == np.array([0.6, 0.8], np.float32).tolist()
    assert not checker.scaled
    assert checker.checked([3e200, 4e200]) == pytest.approx([0.6, 0.8])
    assert checker.scaled
    assert checker.dimension == 2


def test_columns_of_chroma_become_rows():
    told = {"ids": ["a", "b"], "documents": ["oak", "elm"], "embeddings": None, "metadatas": [None, {"x": 1}]}
    assert [row["ids"] for row in rows_of(told)] == ["a", "b"]
    (wrong,) = rows_of({"ids": ["a", "b"], "documents": ["oak"]})
    assert wrong.reason == "not-a-row"
