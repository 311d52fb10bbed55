"""Ids are the same on every machine and in every version: a change would lose documents or pay for vectors again."""

import io
import uuid

import pytest

from parquetry import ids


def test_document_id_is_what_it_has_always_been():
    found = ids.document_id("default", "docs", "a/b.md")
    assert found == "5ecaafd0-fdc9-5e7d-91fe-e50ddeeaadfa"
    assert uuid.UUID(found).version == 5


@pytest.mark.parametrize("place", [("b", "docs", "p"), ("a", "other", "p"), ("a", "docs", "q"), ("ad", "ocs", "p")])
def test_document_id_tells_namespace_source_and_path_apart(place):
    assert ids.document_id(*place) != ids.document_id("a", "docs", "p")


def test_chunk_id_names_its_document_and_place():
    assert ids.chunk_id("x", 7) == "x-chunk-7"


def test_content_and_text_hashes_are_what_they_have_always_been():
    assert ids.content_hash(b"abc") == "cf4ab791c62b8d2b2109c90275287816"
    assert ids.text_hash("größe 🙂") == ids.content_hash("größe 🙂".encode())
    assert ids.text_hashes(["a", "b"]) == [ids.text_hash("a"), ids.text_hash("b")]


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1])
def test_stream_is_hashed_as_its_bytes(size):
    content = b"x" * size
    assert ids.stream_hash(io.BytesIO(content)) == ids.content_hash(content)


def test_revision_fits_a_bigint_and_is_never_zero():
    found = {ids.revision(f"d{number}", "run") for number in range(2000)}
    assert len(found) == 2000
    assert all(0 < revision < 2**63 for revision in found)
    assert ids.revision("d", "run") != ids.revision("d", "run-2")


def test_settings_hash_does_not_depend_on_order():
    assert ids.settings_hash({"a": 1, "b": [2, "x"]}) == ids.settings_hash({"b": [2, "x"], "a": 1})
    assert ids.settings_hash({"a": 1}) != ids.settings_hash({"a": 2})
    assert len(ids.settings_hash({})) == 8
