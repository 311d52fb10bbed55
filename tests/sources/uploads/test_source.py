"""The uploads of a namespace as a source."""

import pytest

from parquetry.errors import BrokenDocument, SettingsError
from parquetry.model import Access, Item, Unlisted
from parquetry.settings.sections import parse_settings
from parquetry.sources.base import Hashing, Pointed
from parquetry.sources.registry import open_source
from parquetry.sources.uploads.scopes import scope_of_uploads
from parquetry.sources.uploads.store import UploadStore


@pytest.fixture
def settings(tmp_path):
    return parse_settings({"corpus": {"root": str(tmp_path / "corpus")}}, "test")


@pytest.fixture
def store(settings):
    return UploadStore(settings)


@pytest.fixture
def source(settings):
    return open_source(scope_of_uploads(settings, "default"), settings.corpus.root)


def test_upload_is_listed_with_what_came_with_it(store, source):
    access = Access("individual", user_id="ada", tags=("t",))
    upload, _ = store.put(
        "default", "minutes", b"text", filename="Minutes.md", content_type="text/markdown",
        metadata={"a": [1]}, access=access, uploaded_by="ada",
    )  # fmt: skip
    store.put("hr", "other", b"text", filename="")
    (item,) = source.scan("")
    assert (item.path, item.uri, item.size, item.access) == (
        "~ada/minutes", "upload://default/~ada/minutes", 4, access,
    )  # fmt: skip
    assert (item.filename, item.submission.content_type, item.submission.metadata) == (
        "Minutes.md", "text/markdown", {"a": [1]},
    )  # fmt: skip
    assert (item.modified_at, item.submission.created_at) == (upload.updated_at, upload.created_at)
    assert source.fetch(item) == (item, b"text")
    assert isinstance(source, Hashing)
    assert source.hash(item.path) == upload.content_hash


def test_prefix_is_a_document_or_a_folder_and_a_look_only_the_document(store, source):
    for name in ("a", "a/b", "ab", "a.md"):
        store.put("default", name, name.encode(), filename="")
    assert sorted(item.path for item in source.scan("a")) == ["a", "a/b"]
    assert isinstance(source, Pointed)
    assert source.look("a").path == "a"
    assert source.look("b") is None


def test_address_is_where_an_imported_page_is(store, source):
    store.put("default", "x", b"text", filename="", kind="url", url="https://example.org/a")
    assert [item.uri for item in source.scan("")] == ["https://example.org/a"]


def test_change_token_covers_bytes_metadata_access_and_address(store, source):
    tokens = set()
    for told in ({}, {"metadata": {"a": 1}}, {"access": Access(tags=("t",))}, {"content_type": "text/html"}):
        store.put("default", "a", b"text", filename="", **told)
        tokens.add(source.look("a").etag)
    store.put("default", "a", b"other", filename="")
    tokens.add(source.look("a").etag)
    assert len(tokens) == 5


def test_replaced_upload_is_read_as_it_is_now_and_a_deleted_one_is_gone(store, source):
    store.put("default", "a", b"one", filename="")
    (item,) = source.scan("")
    store.put("default", "a", b"two", filename="")
    now, content = source.fetch(item)
    assert (content, now.size, now.etag == item.etag) == (b"two", 3, False)
    store.delete("default", "a")
    with pytest.raises(FileNotFoundError):
        source.fetch(item)


def test_damaged_manifest_makes_the_listing_incomplete_and_lost_bytes_fail_one_document(store, source, tmp_path):
    store.put("default", "a", b"one", filename="")
    store.put("default", "b", b"two", filename="")
    manifests = (tmp_path / "corpus/uploads/default").glob("*/manifest.json")
    next(each for each in manifests if b'"path": "a"' in each.read_bytes()).write_text("{")
    assert {type(each) for each in source.scan("")} == {Item, Unlisted}
    assert isinstance(source.look("a"), Unlisted)
    item = source.look("b")
    for file in (tmp_path / "corpus/uploads/default").glob("*/*-shared"):
        file.unlink()
    with pytest.raises(BrokenDocument, match="missing-bytes"):
        source.fetch(item)


def test_name_of_the_source_is_reserved():
    with pytest.raises(SettingsError, match="belongs to documents that were handed in"):
        parse_settings({"source": [{"name": "uploads", "uri": "docs"}]}, "test")
