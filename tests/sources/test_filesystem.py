"""fsspec filesystems, which report different details about files and fail in different ways."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

from parquetry.errors import MissingExtra, SettingsError, TransientError
from parquetry.model import Item, Unlisted
from tests.sources.shelf import opened
from tests.sources.shelves import MemoryShelf

WRITTEN = datetime(2026, 3, 1, 12, tzinfo=UTC)


class TellingFileSystem(MemoryFileSystem):
    """The same memory filesystem, with document details set by the test.

    Args:
        told: details of every document in a listing.
        told_of_one: details of a single document; the same as `told` if not given.
    """

    protocol = "telling"

    def __init__(self, told: dict[str, Any], told_of_one: dict[str, Any] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._told, self._told_of_one = told, told if told_of_one is None else told_of_one

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = super()._strip_protocol(path.removeprefix("telling://"))
        return stripped

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        return [self._described(entry, self._told) for entry in super().ls(path, detail=True)]

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        return self._described(super().info(path), self._told_of_one)

    def _described(self, entry: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
        known = {key: entry[key] for key in ("name", "size", "type")}
        return {**known, **told} if entry["type"] == "file" else known

    def modified(self, path: str) -> datetime:
        raise NotImplementedError


fsspec.register_implementation("telling", f"{__name__}.TellingFileSystem", clobber=True)


@pytest.fixture
def shelf(monkeypatch):
    with ExitStack() as stack:
        yield MemoryShelf(monkeypatch, stack)


def telling(shelf, **options):
    return opened(shelf.root.replace("memory:", "telling:"), **options)


def only(source) -> Item:
    (item,) = source.scan("")
    assert isinstance(item, Item), item
    return item


@pytest.mark.parametrize(
    ("told", "etag", "modified_at"),
    [
        pytest.param({"ETag": '"abc"'}, "etag:abc-3", None, id="entity-tag"),
        pytest.param({"sha": "f00", "mtime": WRITTEN}, "sha:f00-3", WRITTEN, id="checksum-goes-before-time"),
        pytest.param({"mtime": WRITTEN}, f"time:{WRITTEN}-3", WRITTEN, id="time"),
        pytest.param({"mtime": WRITTEN.timestamp()}, f"time:{WRITTEN.timestamp()}-3", WRITTEN, id="seconds"),
        pytest.param({"modificationTime": 1772366400000}, "time:1772366400000-3", WRITTEN, id="milliseconds"),
        pytest.param({"modified": "2026-03-01T12:00:00"}, "time:2026-03-01T12:00:00-3", WRITTEN, id="text"),
        pytest.param(
            {"LastModified": "Sun, 01 Mar 2026 12:00:00 GMT"},
            "time:Sun, 01 Mar 2026 12:00:00 GMT-3",
            WRITTEN,
            id="time-of-http",
        ),
        pytest.param({"modify": "20260301120000"}, "time:20260301120000-3", WRITTEN, id="time-of-ftp"),
        pytest.param({"modify": "Mar 1 12:00"}, "time:Mar 1 12:00-3", None, id="unreadable-time-is-still-a-token"),
        pytest.param({"date_time": (2026, 3, 1, 12, 0, 0), "CRC": 7}, "crc:7-3", WRITTEN, id="zip"),
    ],
)
def test_token_is_made_of_what_a_file_system_tells(shelf, told, etag, modified_at):
    shelf.put("a.md", b"one")
    source = telling(shelf, told=told)
    item = only(source)
    assert item.etag == etag
    assert item.modified_at == (modified_at or datetime.fromtimestamp(0, UTC))
    assert source.fetch(item) == (item, b"one")


def test_file_system_that_tells_nothing_has_its_documents_read_at_every_scan(shelf):
    shelf.put("a.md", b"one")
    source = telling(shelf, told={"size": None})
    item = only(source)
    assert (item.size, item.etag.partition(":")[0]) == (3, "content")
    assert source.fetch(item) == (item, b"one")
    shelf.put("a.md", b"two")
    assert source.fetch(item)[0] == only(source) != item


def test_token_that_only_one_of_listing_and_document_tells_does_not_change_it_for_ever(shelf):
    shelf.put("a.md", b"one")
    source = telling(shelf, told={"mtime": WRITTEN}, told_of_one={"etag": "abc"})
    item = only(source)
    assert source.fetch(item) == (item, b"one")


def test_document_that_comes_shorter_than_its_size_is_not_taken(shelf):
    shelf.put("a.md", b"one")
    source = telling(shelf, told={"etag": "abc", "size": 5})
    with pytest.raises(TransientError, match="changed-while-read"):
        source.fetch(only(source))


def test_document_that_hides_a_folder_of_its_name_is_reported(shelf):
    shelf.put("a.md/b.md", b"two")
    shelf.put("a.md", b"one")
    found = list(shelf.source().scan(""))
    assert [each.detail for each in found if isinstance(each, Unlisted)] == [
        f"{shelf.root}/a.md is a document and a folder, and hides what is below it"
    ]


def test_folder_that_may_not_be_listed_is_reported_and_the_rest_is_listed(shelf):
    shelf.put("a.md", b"one")
    shelf.put("closed/b.md", b"two")
    source = opened(shelf.root.replace("memory:", "refusing:"), refusal="PermissionError", folder="closed")
    found = {each.path: each for each in source.scan("")}
    assert isinstance(found["a.md"], Item)
    assert isinstance(found["closed"], Unlisted)
    assert "no permission" in found["closed"].detail


def test_document_as_a_source_is_refused(shelf):
    shelf.put("a.md", b"one")
    with pytest.raises(SettingsError, match=r"a\.md is a document; name the folder that holds it"):
        list(opened(f"{shelf.root}/a.md").scan(""))


def test_password_in_a_url_is_refused_without_repeating_it():
    with pytest.raises(SettingsError, match="FSSPEC_SFTP_PASSWORD") as raised:
        opened("sftp://ada:s3cret@files.example.com/share")
    assert "s3cret" not in str(raised.value)


def test_file_system_of_this_machine_is_left_to_the_folder_which_keeps_links_in(tmp_path):
    with pytest.raises(SettingsError, match="give the folder as a path"):
        opened(f"local://{tmp_path}")


def test_options_that_a_file_system_does_not_take_are_a_settings_error(shelf):
    source = opened(shelf.root.replace("memory:", "refusing:"))
    with pytest.raises(SettingsError, match=r"cannot be opened: .*refusal"):
        list(source.scan(""))


@pytest.mark.parametrize(
    ("uri", "module", "error", "message"),
    [
        ("abfs://container/x", "adlfs", MissingExtra, r"pip install 'parquetry\[azure\]'"),
        ("gs://bucket/x", "gcsfs", MissingExtra, r"pip install 'parquetry\[gcs\]'"),
        ("box://x", "boxfs", SettingsError, "box:// needs a package: .*boxfs"),
    ],
)
def test_missing_package_is_named(uri, module, error, message, monkeypatch):
    monkeypatch.delitem(_registry, uri.partition(":")[0], raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(error, match=message):
        list(opened(uri).scan(""))


@pytest.mark.parametrize("uri", ["abfs://", "gs://"])
def test_store_without_a_container_is_refused(uri, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=eA==;EndpointSuffix=localhost")
    options = {"token": "anon"} if uri == "gs://" else {}
    with pytest.raises(SettingsError, match=r"names no (container|bucket)"):
        list(opened(uri, **options).scan(""))
