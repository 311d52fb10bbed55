"""The store of uploads: what is kept, and under which names."""

from __future__ import annotations

import json
import os
import re
import stat
import tracemalloc
from contextlib import ExitStack

import pytest

from parquetry.errors import BrokenDocument
from parquetry.model import Access
from parquetry.settings.sections import parse_settings
from parquetry.sources.uploads import store as module
from parquetry.sources.uploads.identity import upload_path
from parquetry.sources.uploads.store import Damaged, UploadStore
from tests.sources.shelves import shelf_of
from tests.sources.uploads.kept_uploads import files, put

ADA = Access("individual", user_id="ada")
ON_DISK = re.compile(r"[a-z0-9=._-]{1,120}")


@pytest.fixture(params=["local", "memory", "s3", "azure", "google"])
def shelf(request, tmp_path, monkeypatch):
    """Make an empty place of every kind."""
    with ExitStack() as stack:
        yield shelf_of(request.param, monkeypatch, stack, tmp_path, request.getfixturevalue)


@pytest.fixture
def anywhere(shelf):
    return UploadStore(parse_settings({"uploads": {"uri": f"{shelf.root}/up"}}, "test"))


# --- every kind of place


# aiohttp warns about what gcsfs sends.
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
def test_upload_is_kept_found_replaced_and_deleted(anywhere, tmp_path):
    first, changed = put(anywhere, metadata={"author": {"name": "Ada"}, "n": [1, None, 0.5]}, access=ADA, kind="text")
    assert changed
    assert anywhere.get("default", "~ada/a.md") == first
    assert anywhere.read(first) == b"text"
    big = tmp_path / "big.bin"
    big.write_bytes(os.urandom(9 * 1024 * 1024))
    second, _ = put(anywhere, content=big, access=ADA)
    assert (second.created_at, second.size) == (first.created_at, big.stat().st_size)
    assert second.updated_at > first.updated_at
    assert anywhere.read(second) == big.read_bytes()
    assert anywhere.read(first) == big.read_bytes(), "a reader that is late reads what replaced it"
    put(anywhere, "b/c.md", namespace="HR")
    assert anywhere.namespaces() == ["HR", "default"]
    assert list(anywhere.each("default")) == [second]
    assert [upload.path for upload in anywhere.each("HR", "b")] == ["b/c.md"]
    assert list(anywhere.each("HR", "b/")) != list(anywhere.each("HR", "c")) == []
    assert anywhere.delete("default", "~ada/a.md")
    assert not anywhere.delete("default", "~ada/a.md")
    assert anywhere.get("default", "~ada/a.md") is None
    assert anywhere.namespaces() == ["HR"]


def test_same_again_does_nothing(anywhere):
    first, _ = put(anywhere, metadata={"a": 1}, uploaded_by="ada")
    assert put(anywhere, metadata={"a": 1}, uploaded_by="bob") == (first, False)
    for told in ({"metadata": {"a": True}}, {"metadata": {}}, {"access": Access(tags=("x",))}, {"url": "http://x/"}):
        assert put(anywhere, **told)[1], told
        assert not put(anywhere, **told)[1], told


def test_erasure_takes_all_of_a_user_and_nothing_of_others(anywhere):
    put(anywhere, "mine", b"planted", access=ADA)
    put(anywhere, "other", b"kept", access=Access("individual", user_id="ada2"))
    put(anywhere, "shared", b"kept", access=Access("organization", org_id="acme", user_id="ada"))
    assert anywhere.forget("ada") == 1
    assert sorted(upload.path for upload in anywhere.each("default")) == ["~ada/shared", "~ada2/other"]


# --- identity


def test_owners_and_namespaces_keep_documents_apart(store):
    accesses = [Access(), ADA, Access("individual", user_id="bob"), Access("organization", org_id="ada")]
    paths = [put(store, access=access)[0].path for access in accesses]
    assert paths == ["a.md", "~ada/a.md", "~bob/a.md", "~@ada/a.md"]
    assert len(list(store.each("default"))) == 4
    put(store, namespace="hr")
    assert len(list(store.each("hr"))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("~ada/a.md", Access()), ("a.md", ADA)),
        (("a.md", Access("individual", user_id="@x")), ("a.md", Access("organization", org_id="x"))),
        (("b/c", Access("individual", user_id="a")), ("c", Access("individual", user_id="a/b"))),
        (("~/x", Access()), ("~x", Access())),
        (("a\x1b", Access()), ("a\\u{1b}", Access())),
    ],
)
def test_nobody_can_name_a_document_of_somebody_else(one, other):
    assert upload_path(*one) != upload_path(*other)


def test_hash_names_what_has_no_name(store):
    upload, _ = put(store, None, b"text")
    assert upload.path == upload.filename == upload.content_hash
    assert not put(store, None, b"text")[1]


HOSTILE = (
    "../../../etc/passwd",
    "/etc/passwd",
    "..\\..\\boot.ini",
    "nul\x00.md",
    "line\nend\r.md",
    "\x1b[31mred",
    "gpj.\u202eexe",
    "half-\ud800.md",
    "con",
    "manifest.json",
    "a" * 4096,
    "日本語.md",
    "e\u0301.md",
    " ",
    ".",
    "..",
    "C:\\x",
    "a/" * 100,
)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_hostile_name_never_reaches_the_disk(store, tmp_path, name):
    upload, _ = store.put("default", name, b"x", filename=name, metadata={name: name})
    assert store.read(store.get("default", upload.path)) == b"x"
    assert all(ON_DISK.fullmatch(part) for file in files(tmp_path) for part in file.split("/"))
    assert [child.name for child in tmp_path.iterdir()] == ["corpus"]
    for shown in (upload.path, upload.filename):
        shown.encode()
        assert not re.search("[\x00-\x1f\u202e]", shown)
    assert store.delete("default", upload.path)
    assert files(tmp_path) == []


@pytest.mark.parametrize("namespace", ["..", ".", "HR", "con", "x" * 200, "ümlaut", "-", "a."])
def test_namespace_of_any_name_has_a_folder_of_its_own(store, tmp_path, namespace):
    put(store, namespace=namespace)
    assert store.namespaces() == [namespace]
    assert all(ON_DISK.fullmatch(part) for file in files(tmp_path) for part in file.split("/"))


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"namespace": "a/b"}, "bad-namespace"),
        ({"namespace": ""}, "bad-namespace"),
        ({"name": "a" * 4097}, "name-too-long"),
        ({"metadata": {"a": object()}}, "bad-metadata"),
        ({"metadata": {"a": float("nan")}}, "bad-metadata"),
        ({"metadata": {"a": "x" * 300_000}}, "metadata-too-large"),
        ({"metadata": {"a": json.loads("[" * 100 + "]" * 100)}}, "bad-metadata"),
        ({"access": Access(tags=tuple(map(str, range(100_000))))}, "metadata-too-large"),
        ({"access": Access("individual")}, "bad-access"),
        ({"access": Access("everybody")}, "bad-access"),
        ({"url": "https://ada:secret@example.org/"}, "bad-url"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_written(store, tmp_path, told, reason):
    with pytest.raises(BrokenDocument) as error:
        put(store, **told)
    assert error.value.reason == reason
    assert "secret" not in str(error.value)
    assert not (tmp_path / "corpus").exists()


# --- files


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_only_the_owner_may_read(store, tmp_path):
    (tmp_path / "corpus").mkdir(mode=0o755)
    put(store)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "corpus").rglob("*")}
    assert set(modes.values()) == {0o700, 0o600}
    assert all((mode == 0o700) == path.is_dir() for path, mode in modes.items())
    assert stat.S_IMODE((tmp_path / "corpus").stat().st_mode) == 0o755


def test_replaced_bytes_are_gone(store, tmp_path):
    for content in (b"one", b"two", b"three"):
        put(store, content=content)
    assert len(files(tmp_path)) == 2


def test_file_is_read_in_blocks(store, tmp_path):
    big = tmp_path / "big"
    with big.open("wb") as stream:
        stream.truncate(64 * 1024 * 1024)
    tracemalloc.start()
    try:
        put(store, content=big)
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_file_that_grows_while_it_is_read_is_refused(store, tmp_path, monkeypatch):
    file = tmp_path / "growing"
    file.write_bytes(b"one")
    known = module.size_and_hash(file)
    file.write_bytes(b"two")
    monkeypatch.setattr(module, "size_and_hash", lambda _: known)
    with pytest.raises(BrokenDocument, match="changed-while-read"):
        put(store, content=file)
    assert files(tmp_path) == []


def test_missing_or_other_bytes_are_told_and_healed_by_the_same_again(store, tmp_path):
    upload, _ = put(store)
    (file,) = (name for name in files(tmp_path) if not name.endswith("manifest.json"))
    kept = tmp_path / "corpus" / "uploads" / file
    kept.write_bytes(b"tex!")
    with pytest.raises(BrokenDocument, match="damaged-bytes"):
        store.read(upload)
    kept.unlink()
    with pytest.raises(BrokenDocument, match="missing-bytes"):
        store.read(upload)
    healed, changed = put(store)
    assert (changed, store.read(healed)) == (True, b"text")
    next((tmp_path / "corpus" / "uploads").glob("*/*/*-shared")).write_bytes(b"tex!")
    healed, changed = put(store)
    assert (changed, store.read(healed)) == (True, b"text")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"form": 9}', b"\xff", b"[" * 100_000, b"x" * 1_000_000], ids=len
)
def test_damaged_manifest_is_reported_and_replaced_by_the_next(store, tmp_path, content):
    put(store)
    (name,) = (name for name in files(tmp_path) if name.endswith("manifest.json"))
    (tmp_path / "corpus" / "uploads" / name).write_bytes(content)
    (found,) = store.listed("default")
    assert isinstance(found, Damaged)
    with pytest.raises(Damaged, match=name):
        store.get("default", "a.md")
    assert store.namespaces() == ["default"]
    assert put(store)[1]
    assert [upload.path for upload in store.each("default")] == ["a.md"]


def test_manifest_of_another_document_or_pointing_elsewhere_is_damaged(store, tmp_path):
    put(store, "a.md")
    put(store, "b.md")
    one, two = (tmp_path / "corpus" / "uploads" / name for name in files(tmp_path) if name.endswith("manifest.json"))
    told = json.loads(one.read_bytes())
    two.write_bytes(one.read_bytes())
    one.write_text(json.dumps({**told, "file": "../../../secret"}))
    assert [type(found) for found in store.listed("default")] == [Damaged, Damaged]
