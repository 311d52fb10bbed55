"""Archives are listed like folders; a fault in a member is a failure of that member alone."""

import bz2
import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from parquetry import ids
from parquetry.errors import DocumentError
from parquetry.model import Access, Item
from parquetry.sources.archive import members as limits
from parquetry.sources.archive.source import ArchivedSource
from parquetry.sources.base import Hashing
from parquetry.sources.selection import SelectedSource, Selection
from parquetry.unpacking import pieces
from tests.shelf_source import ShelfSource
from tests.sources.packed import KINDS, TEXTS, local, read, remote, tarred, unlisted, zipped, zstd

# --- members


@pytest.mark.parametrize("kind", KINDS)
def test_members_are_documents_of_the_source(holding, kind):
    source = holding({"plain.md": b"plain", f"box/{kind}": KINDS[kind](TEXTS)})
    expected = {f"box/{kind}!/{name}": content for name, content in TEXTS.items()}
    assert read(source) == {"plain.md": b"plain", **expected}


@pytest.mark.parametrize("kind", KINDS)
def test_member_tells_its_place_size_and_owner(tmp_path, kind):
    (tmp_path / kind).write_bytes(KINDS[kind]({"über uns.md": b"12345"}))
    access = Access("individual", user_id="ada")
    (item,) = local(tmp_path, access=access).scan("")
    assert item.uri == f"{(tmp_path / kind).as_uri()}!/%C3%BCber%20uns.md"
    assert (item.size, item.access) == (5, access)


@pytest.mark.parametrize("prefix", ["a.zip", "a.zip!/sub", "a.zip!/sub/deep/oak.txt", "plain.md"])
def test_part_of_a_source_may_be_an_archive_or_lead_into_one(tmp_path, prefix):
    (tmp_path / "a.zip").write_bytes(zipped(TEXTS))
    (tmp_path / "plain.md").write_text("plain")
    source = local(tmp_path)
    whole = read(source)
    expected = {path for path in whole if path == prefix or path.startswith((f"{prefix}/", f"{prefix}!/"))}
    assert set(read(source, prefix)) == expected != set()


def test_members_are_selected_by_the_excludes(tmp_path):
    litter = ["__MACOSX/._a.md", ".git/config", "drafts/x.md", "b.tmp"]
    (tmp_path / "a.zip").write_bytes(zipped(dict.fromkeys([*litter, "a.md", "b.bin"], b"x")))
    found = read(local(tmp_path, include=("*.zip",), exclude=("drafts/",)))
    assert set(found) == {"a.zip!/a.md", "a.zip!/b.bin"}


def test_archives_can_stay_closed(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped(TEXTS))
    assert set(read(local(tmp_path, options={"archives": False}))) == {"a.zip"}


@pytest.mark.parametrize("kind", KINDS)
def test_member_that_stays_the_same_is_known_again_when_its_archive_changes(tmp_path, kind):
    """Its checksum or its hash matches, so it is not extracted again."""
    (tmp_path / kind).write_bytes(KINDS[kind](TEXTS))
    before = {item.path: item for item in local(tmp_path).scan("")}
    (tmp_path / kind).write_bytes(KINDS[kind]({**TEXTS, "new.md": b"new", "read.md": b"# Read it"}))
    os.utime(tmp_path / kind, (1_950_000_000, 1_950_000_000))
    source = local(tmp_path)
    now = {item.path: item for item in source.scan("")}
    assert isinstance(source, Hashing)
    assert now[f"{kind}!/read.md"].etag != before[f"{kind}!/read.md"].etag
    same = f"{kind}!/sub/deep/oak.txt"
    assert now[same].etag == before[same].etag or source.hash(same) == ids.content_hash(b"Oak stands.")


def test_unchanged_archive_has_unchanged_tokens(holding):
    source = holding({kind: make(TEXTS) for kind, make in KINDS.items()})
    assert list(source.scan("")) == list(source.scan(""))


def test_remote_archive_is_read_once_for_all_its_members():
    source = remote({"a.tar.gz": KINDS["a.tar.gz"](TEXTS)})
    assert len(read(source)) == 3
    assert source._source.fetched == ["a.tar.gz"]


def test_many_archives_are_not_all_kept_open(tmp_path):
    for number in range(30):
        (tmp_path / f"{number:02}.zip").write_bytes(zipped({"a.md": str(number).encode()}))
    source = local(tmp_path)
    items = list(source.scan(""))
    assert [source.fetch(item)[1] for item in items] == [str(number).encode() for number in range(30)]
    assert len(source._open) <= 8


def test_archives_are_closed_to_give_memory_back_and_opened_again_when_asked():
    source = remote({"a.tar.gz": KINDS["a.tar.gz"](TEXTS), "b.zip": zipped(TEXTS)})
    items = list(source.scan(""))
    held = list(source._open.values())
    assert len(held) == 2
    source.give_memory_back()
    assert not source._open
    assert sorted(source.fetch(item)[1] for item in items) == sorted([*TEXTS.values()] * 2)
    assert not set(source._open.values()) & set(held)


def test_nobody_waits_for_an_archive_to_give_memory_back(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped(TEXTS))
    source = local(tmp_path)
    list(source.scan(""))
    with source._lock, ThreadPoolExecutor(1) as other:
        other.submit(source.give_memory_back).result(60)
    assert len(source._open) == 1


def test_what_is_below_the_globs_and_the_archives_gives_memory_back():
    class Holding(ShelfSource):
        held = 1

        def give_memory_back(self):
            self.held = 0

    below = Holding(a__md="text")
    ArchivedSource(SelectedSource(below, Selection()), Selection()).give_memory_back()
    assert not below.held
    # Those that hold nothing have nothing to do.
    ArchivedSource(SelectedSource(ShelfSource(), Selection()), Selection()).give_memory_back()


# --- nesting


def test_archive_in_an_archive_is_opened_and_one_within_that_is_refused(holding):
    innermost = zipped({"c.md": b"c"})
    inner = KINDS["a.tar.gz"]({"b.md": b"b", "innermost.zip": innermost})
    source = holding({"outer.zip": zipped({"a.md": b"a", "inner.tgz": inner})})
    assert read(source) == {
        "outer.zip!/a.md": b"a",
        "outer.zip!/inner.tgz!/b.md": b"b",
        "outer.zip!/inner.tgz!/innermost.zip": "nested-too-deep",
    }


def test_damaged_archive_in_an_archive_leaves_the_others_readable(holding):
    source = holding({"outer.zip": zipped({"a.md": b"a", "inner.zip": b"PK no"})})
    items = {item.path: item for item in source.scan("") if isinstance(item, Item)}
    assert source.fetch(items["outer.zip!/a.md"])[1] == b"a"
    with pytest.raises(DocumentError, match="damaged"):
        source.fetch(items["outer.zip!/inner.zip"])
    assert unlisted(source) == ["outer.zip!/inner.zip"]


# --- refusals


@pytest.mark.parametrize(
    "name",
    ["../up.md", "a/../../up.md", "/etc/passwd", "C:\\windows\\x.md", "c:/x.md", "..\\up.md", "..", "n" * 2000],
)
def test_name_that_leads_out_is_refused_and_the_others_are_read(tmp_path, name):
    (tmp_path / "a.zip").write_bytes(zipped({name: b"evil", "good.md": b"good"}))
    found = read(local(tmp_path))
    assert found.pop("a.zip!/good.md") == b"good"
    assert list(found.values()) == ["unsafe-name"]
    assert ".." not in str(*found).split("!/")[1]


@pytest.mark.parametrize("name", ["../up.md", "/etc/passwd", "a/../../b"])
def test_name_that_leads_out_of_a_tar_is_refused(tmp_path, name):
    (tmp_path / "a.tar").write_bytes(tarred({name: b"evil", "./good.md": b"good"}))
    found = read(local(tmp_path))
    assert found.pop("a.tar!/good.md") == b"good"
    assert list(found.values()) == ["unsafe-name"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_name_of_several_members_is_refused_once(tmp_path):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for content in ("one", "two", "three"):
            archive.writestr("a.md", content)
        archive.writestr("./a.md", "four")
        archive.writestr("b.md", "fine")
    (tmp_path / "a.zip").write_bytes(target.getvalue())
    assert read(local(tmp_path)) == {"a.zip!/a.md": "duplicate-name", "a.zip!/b.md": b"fine"}


def test_links_and_devices_are_skipped_and_folders_are_nothing(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, kind in {
            "folder": tarfile.DIRTYPE,
            "link.md": tarfile.SYMTYPE,
            "hard.md": tarfile.LNKTYPE,
            "pipe": tarfile.FIFOTYPE,
            "disk": tarfile.BLKTYPE,
        }.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    link = zipfile.ZipInfo("link.md")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("folder/", "")
        archive.writestr(link, "/etc/passwd")
    assert read(local(tmp_path)) == {
        "a.tar!/link.md": "link",
        "a.tar!/hard.md": "link",
        "a.tar!/pipe": "not-a-file",
        "a.tar!/disk": "not-a-file",
        "b.zip!/link.md": "link",
    }


def test_encrypted_member_is_refused_by_itself(tmp_path):
    content = bytearray(zipped({"secret.md": b"secret", "open.md": b"open"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    (tmp_path / "a.zip").write_bytes(content)
    assert read(local(tmp_path)) == {"a.zip!/secret.md": "encrypted", "a.zip!/open.md": b"open"}


def test_bomb_is_refused_by_what_it_declares_or_by_what_comes_out(tmp_path):
    (tmp_path / "honest.zip").write_bytes(zipped({"zeros.txt": bytes(40 << 20), "good.md": b"good"}))
    assert read(local(tmp_path)) == {"honest.zip!/zeros.txt": "too-large", "honest.zip!/good.md": b"good"}


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("a.tar.gz", gzip.compress),
        ("a.tar.bz2", lambda content: bz2.compress(content, 1)),
        ("a.tar.xz", lambda content: lzma.compress(content, preset=0)),
        ("a.tar.zst", zstd.compress),
    ],
    ids=["gz", "bz2", "xz", "zst"],
)
def test_compressed_tar_that_is_a_bomb_is_refused(tmp_path, name, packed):
    (tmp_path / name).write_bytes(tarred({"zeros.txt": bytes(40 << 20)}, packed))
    source = local(tmp_path)
    assert unlisted(source) == [name]
    (item,) = (found for found in source.scan("") if isinstance(found, Item))
    with pytest.raises(DocumentError, match=r"too-large: unpacks to more than 300 times"):
        source.fetch(item)
    with (tmp_path / name).open("rb") as stream:
        sizes = [len(piece) for piece in pieces(stream, name)]
    assert max(sizes) <= 1 << 20 < 40 << 20 < sum(sizes)


def test_member_that_lies_about_its_size_is_damaged(tmp_path):
    content = bytearray(zipped({"a.md": b"x" * 1000}))
    at = content.index(b"PK\x01\x02")
    struct.pack_into("<I", content, at + 24, 10)
    (tmp_path / "a.zip").write_bytes(content)
    assert read(local(tmp_path)) == {"a.zip!/a.md": "damaged"}


def test_zip_with_an_immense_table_of_contents_is_refused_before_it_is_read(tmp_path):
    content = bytearray(zipped({"a.md": b"x"}))
    struct.pack_into("<I", content, content.rindex(b"PK\x05\x06") + 12, 1 << 31)
    (tmp_path / "a.zip").write_bytes(content)
    source = local(tmp_path)
    item, hidden = source.scan("")
    with pytest.raises(DocumentError, match=r"too-many-members: .* 2147483648 bytes"):
        source.fetch(item)
    assert hidden.path == "a.zip"


@pytest.mark.parametrize("kind", ["a.zip", "a.tar", "a.tar.gz"])
def test_archive_with_too_many_members_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(limits, "MAX_MEMBERS", 5)
    (tmp_path / kind).write_bytes(KINDS[kind]({f"{number}.md": b"x" for number in range(6)}))
    source = local(tmp_path)
    assert unlisted(source) == [kind]


def test_tar_header_that_asks_for_much_memory_is_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("a.md")
        info.pax_headers = {"comment": "x" * (2 << 20)}
        archive.addfile(info)
    assert unlisted(local(tmp_path)) == ["a.tar"]
