"""The contract of all sources, for every kind of place.

Videos have their own tests: their text is made from captions, under a name that the site assigns.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC

import pytest

from parquetry.errors import SettingsError, TransientError
from parquetry.model import Item, Unlisted
from parquetry.sources.base import Source
from tests.sources.shelf import ACCESS, Shelf
from tests.sources.shelves import KINDS, shelf_of

DENYING = tuple(kind for kind in KINDS if kind not in ("local", "google", "archive", "web"))
"""Folder permissions do not apply to root, which often runs the tests; a separate test uses a process without root.
Google's emulator needs no credentials; a separate test responds as Google does. A denied page is a failure of that page
alone, and an archive has no permissions but those of its folder."""
APART = tuple(kind for kind in KINDS if kind != "archive")
"""The change token of a member includes that of its archive; the hash shows if the member changed."""
ASKED_ANEW = tuple(kind for kind in KINDS if kind not in ("archive", "web"))
"""An archive is read as it was when opened, and a page as it was when listed."""
NAMED = tuple(kind for kind in KINDS if kind != "web")
"""A page is named by its address, in which some characters stay escaped; pages have separate tests."""
SETTLED = tuple(kind for kind in KINDS if kind != "web")
"""A missing list of pages may come back: its listing is incomplete, and nothing is removed."""
HOSTILE = (
    "plain space .md",
    "ümläut-ß.md",
    "decomposed-u\u0308.md",
    "日本語/文書.md",
    "emoji-🦉.md",
    "100%.md",
    "percent%2Fslash.md",
    "question?x=1.md",
    "hash#1.md",
    "plus+and&equals=.md",
    "colon:semi;at@.md",
    "quote'\".md",
    "[set]{brace}*.md",
    "<tag>&amp;.md",
    "back\\slash.md",
    "escape\\x41.md",
    "dots../b..md",
    "-dash.md",
    "new\nline.md",
    "tab\t.md",
    "a/../up.md",
    "a/./here.md",
    "double//slash.md",
    "/lead.md",
)


@pytest.fixture
def shelf(request, tmp_path, monkeypatch) -> Iterator[Shelf]:
    with ExitStack() as stack:
        yield shelf_of(request.param, monkeypatch, stack, tmp_path, request.getfixturevalue)


def items(source: Source, prefix: str = "") -> dict[str, Item]:
    """Return the listed items by path; fail on duplicates and on anything unlisted."""
    found = list(source.scan(prefix))
    assert [each for each in found if isinstance(each, Unlisted)] == []
    listed = {each.path: each for each in found if isinstance(each, Item)}
    assert len(listed) == len(found)
    return listed


def faults(source: Source) -> list[str]:
    """Return the signs of an incomplete listing; empty if it looks complete."""
    try:
        return [each.detail for each in source.scan("") if isinstance(each, Unlisted)]
    except (SettingsError, TransientError, OSError) as error:
        return [str(error)]


@pytest.mark.parametrize("shelf", KINDS, indirect=True)
def test_everything_is_listed_with_its_size_place_and_access(shelf):
    contents = {"a.md": b"one", "sub/b.txt": b"", "sub/deep/c.md": b"three" * 100}
    for path, content in contents.items():
        shelf.put(path, content)
    found = items(shelf.source())
    assert {path: item.size for path, item in found.items()} == {
        path: len(content) for path, content in contents.items()
    }
    assert len({item.uri for item in found.values()}) == len({item.etag for item in found.values()} - {""}) == 3
    assert {item.access for item in found.values()} == {ACCESS}
    assert {item.modified_at.tzinfo for item in found.values()} == {UTC}
    assert all(item.modified_at.year >= 2026 for item in found.values())


@pytest.mark.parametrize("shelf", KINDS, indirect=True)
def test_empty_place_lists_nothing_and_says_nothing(shelf):
    shelf.put("a.md", b"x")
    shelf.delete("a.md")
    assert items(shelf.source()) == {}


@pytest.mark.parametrize("shelf", KINDS, indirect=True)
def test_part_of_a_place_is_what_the_whole_lists_there(shelf):
    for path in ("a.md", "a.md.txt", "sub/b.md", "sub/deep/c.md", "subway/d.md"):
        shelf.put(path, path.encode())
    source = shelf.source()
    whole = items(source)
    assert len(whole) == 5
    for prefix in ("", "sub", "sub/", "sub/deep", "a.md", "sub/b.md", "nowhere", "a.md/x"):
        part = prefix.rstrip("/")
        expected = {path for path in whole if not part or path == part or path.startswith(f"{part}/")}
        assert set(items(source, prefix)) == expected, prefix


@pytest.mark.parametrize("shelf", KINDS, indirect=True)
def test_document_is_read_as_it_was_listed(shelf):
    contents = {"a.md": b"one", "empty.md": b"", "sub/large.bin": bytes(range(256)) * 4096}
    for path, content in contents.items():
        shelf.put(path, content)
    source = shelf.source()
    for path, item in items(source).items():
        assert source.fetch(item) == (item, contents[path])


@pytest.mark.parametrize("shelf", APART, indirect=True)
def test_change_token_differs_after_a_change_and_only_then(shelf):
    shelf.put("a.md", b"one")
    shelf.put("b.md", b"two")
    source = shelf.source()
    before = items(source)
    assert items(source) == before == items(shelf.source())
    shelf.put("a.md", b"eno")
    after = items(source)
    assert after["a.md"].etag != before["a.md"].etag
    assert after["b.md"] == before["b.md"]


@pytest.mark.parametrize("shelf", ASKED_ANEW, indirect=True)
def test_document_that_changed_after_the_listing_is_what_the_next_listing_says(shelf):
    shelf.put("a.md", b"one")
    source = shelf.source()
    (listed,) = items(source).values()
    shelf.put("a.md", b"something else")
    read, content = source.fetch(listed)
    assert content == b"something else"
    assert read == items(source)["a.md"] != listed


@pytest.mark.parametrize("shelf", ASKED_ANEW, indirect=True)
def test_document_that_vanished_after_the_listing_is_not_found(shelf):
    shelf.put("a.md", b"one")
    shelf.put("b.md", b"two")
    source = shelf.source()
    listed = items(source)
    shelf.delete("a.md")
    with pytest.raises(FileNotFoundError):
        source.fetch(listed["a.md"])
    assert set(items(source)) == {"b.md"}


@pytest.mark.parametrize("shelf", NAMED, indirect=True)
def test_hostile_names_are_listed_and_read_as_they_are(shelf):
    contents = {name: name.encode() for name in HOSTILE if name not in shelf.refused}
    for name, content in contents.items():
        shelf.put(name, content)
    source = shelf.source()
    listed = items(source)
    assert len(listed) == len(contents)
    read = {path: source.fetch(item) for path, item in listed.items()}
    assert sorted(content for _, content in read.values()) == sorted(contents.values())
    assert {path for path in listed if "\\x" not in path} == {name for name in contents if "\\x" not in name}
    for path, item in listed.items():
        assert read[path][0] == item
        assert set(items(source, path)) == {path}
        path.encode("utf-8")
        item.uri.encode("utf-8")


@pytest.mark.parametrize("shelf", SETTLED, indirect=True)
def test_place_that_does_not_exist_is_a_settings_error(shelf):
    for prefix in ("", "sub"):
        with pytest.raises(SettingsError, match=r"(does not exist|there is no).*; correct"):
            list(shelf.missing().scan(prefix))


@pytest.mark.parametrize("shelf", DENYING, indirect=True)
def test_place_that_may_not_be_listed_says_what_to_look_at(shelf):
    shelf.put("a.md", b"one")
    with pytest.raises(SettingsError, match=r"; (check the credentials|correct [A-Z_]+)"):
        list(shelf.denied().scan(""))


@pytest.mark.parametrize("shelf", KINDS, indirect=True)
def test_listing_that_breaks_off_never_looks_whole(shelf):
    assert faults(shelf.halting()) != []


@pytest.mark.parametrize("shelf", KINDS, indirect=True)
def test_documents_are_read_by_several_threads_at_a_time(shelf):
    contents = {f"{number % 3}/{number}.md": b"%d" % number * 1000 for number in range(24)}
    for path, content in contents.items():
        shelf.put(path, content)
    source = shelf.source()
    listed = items(source)
    with ThreadPoolExecutor(8) as threads:
        read = dict(zip(listed, threads.map(source.fetch, listed.values()), strict=True))
    assert {path: content for path, (_, content) in read.items()} == contents
