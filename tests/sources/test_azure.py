"""Behaviour specific to Azure containers."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from parquetry.errors import SettingsError
from parquetry.sources import azure
from tests.sources.cloud_shelves import AzureShelf
from tests.sources.shelf import opened


@pytest.fixture
def shelf(azurite, monkeypatch):
    with ExitStack() as stack:
        yield AzureShelf(monkeypatch, stack, azurite)


def test_folders_of_hierarchical_accounts_and_of_tools_are_no_documents(shelf):
    shelf.put("folder", b"", {"hdi_isfolder": "true"})
    shelf.put("tool/", b"")
    shelf.put("folder/a.md", b"x")
    assert [item.path for item in shelf.source().scan("")] == ["folder/a.md"]


def test_pages_of_a_listing_are_put_together(shelf, monkeypatch):
    monkeypatch.setattr(azure, "_PAGE", 2)
    for number in range(5):
        shelf.put(f"{number}.md", b"x")
    assert len(list(shelf.source().scan(""))) == 5


def test_changed_metadata_change_the_token_and_nothing_else(shelf):
    shelf.put("a.md", b"x")
    source = shelf.source()
    (before,) = source.scan("")
    shelf.put("a.md", b"x", {"owner": "ada"})
    (after,) = source.scan("")
    assert after.etag != before.etag
    assert source.fetch(before) == (after, b"x")


def test_place_without_credentials_is_a_settings_error(monkeypatch):
    for name in ("CONNECTION_STRING", "ACCOUNT_NAME", "ACCOUNT_KEY"):
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)
    monkeypatch.setenv("AZURE_STORAGE_ANON", "true")
    with pytest.raises(SettingsError, match=r"cannot be opened: .*connection_string or account_name"):
        list(opened("abfs://container").scan(""))
