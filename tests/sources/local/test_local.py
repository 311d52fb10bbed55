"""A folder is listed by gitignore rules, for any names, links and permissions; nothing is passed over in silence."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from parquetry import ids
from parquetry.errors import SettingsError, TransientError
from parquetry.model import Access, Item, Unlisted
from parquetry.sources.local.source import LocalSource
from parquetry.sources.names import native, printable
from tests.permissions import obey_permissions


def write(root, *paths):
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path, "utf-8", "surrogateescape")


def listed(source, prefix=""):
    found = list(source.scan(prefix))
    assert all(isinstance(each, Item) for each in found), found
    paths = [item.path for item in found]
    assert len(paths) == len(set(paths))
    return sorted(paths)


# --- selection of files


def test_folder_is_listed_with_sizes_places_and_access(tmp_path):
    write(tmp_path, "a.md", "sub/b.txt")
    access = Access("individual", user_id="ada", tags=("x",))
    items = {item.path: item for item in LocalSource(tmp_path, access=access).scan("")}
    assert sorted(items) == ["a.md", "sub/b.txt"]
    item = items["sub/b.txt"]
    assert item.size == len("sub/b.txt")
    assert item.uri == (tmp_path / "sub/b.txt").as_uri()
    assert item.access == access
    assert item.modified_at.timestamp() == pytest.approx((tmp_path / "sub/b.txt").stat().st_mtime, abs=1e-5)


def test_empty_folder_lists_nothing_and_says_nothing(tmp_path):
    assert list(LocalSource(tmp_path).scan("")) == []


def test_hidden_files_caches_and_litter_are_left_out_by_default(tmp_path):
    litter = [".env", ".git/config", "__pycache__/a.py", "x/node_modules/b.js", "venv/c.py", "p.egg-info/d.txt"]
    litter += ["build/a.md", "x/dist/b.md"]
    write(tmp_path, "a.md", *litter, "Thumbs.db", "~$a.docx", "a.md~", "b.swp", "c.tmp", "d.part", "e.crdownload")
    assert listed(LocalSource(tmp_path)) == ["a.md"]


def test_folders_of_what_was_built_are_left_out_and_can_be_taken_back(tmp_path):
    write(tmp_path, "a.md", "build", "docs/dist.md", "x/build/b.md", "x/dist/c.md")
    assert listed(LocalSource(tmp_path)) == ["a.md", "build", "docs/dist.md"]
    assert listed(LocalSource(tmp_path, exclude=["!build/"])) == ["a.md", "build", "docs/dist.md", "x/build/b.md"]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        pytest.param(["**/*.md"], [], ["a.md", "drafts/c.md", "drafts/deep/d.md"], id="include-by-extension"),
        pytest.param(["*.md"], [], ["a.md", "drafts/c.md", "drafts/deep/d.md"], id="a-bare-glob-matches-at-any-depth"),
        pytest.param(["/*.md"], [], ["a.md"], id="a-leading-slash-anchors"),
        pytest.param(["drafts/"], [], ["drafts/c.md", "drafts/deep/d.md"], id="include-a-folder"),
        pytest.param(["**/*.md", "!drafts/**"], [], ["a.md"], id="include-takes-back"),
        pytest.param([], ["drafts/**"], ["a.md", "b.txt"], id="exclude-a-folder"),
        pytest.param([], ["drafts"], ["a.md", "b.txt"], id="exclude-a-folder-by-name"),
        pytest.param([], ["*.md", "!a.md"], ["a.md", "b.txt"], id="exclude-takes-back"),
        pytest.param([], ["drafts/*", "!drafts/deep"], ["a.md", "b.txt", "drafts/deep/d.md"], id="take-back-a-folder"),
        pytest.param([], ["drafts/", "!drafts/c.md"], ["a.md", "b.txt"], id="no-way-back-out-of-an-excluded-folder"),
        pytest.param(
            [], ["#a.md", "[ab].md", ""], ["b.txt", "drafts/c.md", "drafts/deep/d.md"], id="comments-and-sets"
        ),
    ],
)
def test_globs_follow_gitignore(tmp_path, include, exclude, expected):
    write(tmp_path, "a.md", "b.txt", "drafts/c.md", "drafts/deep/d.md")
    assert listed(LocalSource(tmp_path, include, exclude)) == expected


def test_default_exclude_is_taken_back(tmp_path):
    write(tmp_path, ".github/workflows/ci.yml", ".secret/x.md", "b.tmp")
    assert listed(LocalSource(tmp_path, exclude=["!.github", "!*.tmp"])) == [".github/workflows/ci.yml", "b.tmp"]


def test_corpus_inside_the_source_is_not_listed(tmp_path):
    write(tmp_path, "a.md", "kb/corpus/chunks/x.md", "kb/corpus-notes.md", "kb/corpus2/y.md")
    (tmp_path / "into.md").symlink_to(tmp_path / "kb/corpus/chunks/x.md")
    source = LocalSource(tmp_path, skip=tmp_path / "kb" / "corpus")
    assert listed(source) == ["a.md", "kb/corpus-notes.md", "kb/corpus2/y.md"]


@pytest.mark.parametrize(("inner", "problem"), [("", "is the corpus itself"), ("chunks", "is inside the corpus /")])
def test_corpus_and_folders_in_it_are_refused_as_sources(tmp_path, inner, problem):
    write(tmp_path, "chunks/a.md")
    with pytest.raises(SettingsError, match=problem):
        list(LocalSource(tmp_path / inner, skip=tmp_path).scan(""))


# --- part of a source


@pytest.mark.parametrize("prefix", ["", "sub", "sub/", "sub/deep", "a.md", "sub/b.md", "nowhere", "a.md/x"])
def test_part_of_a_source_is_what_the_whole_lists_there(tmp_path, prefix):
    write(tmp_path, "a.md", "sub/b.md", "sub/deep/c.md", "subway/d.md", "a.md.txt")
    source = LocalSource(tmp_path)
    whole = [
        path for path in listed(source) if not prefix or path == prefix or path.startswith(f"{prefix.strip('/')}/")
    ]
    assert listed(source, prefix) == whole


@pytest.mark.parametrize("prefix", [".hidden.md", ".git", ".git/x.md", "drafts/a.md", "b.bin"])
def test_part_that_the_globs_leave_out_is_refused_by_name(tmp_path, prefix):
    """Otherwise it would come with this refresh and leave with the next one of the whole source."""
    write(tmp_path, ".hidden.md", ".git/x.md", "drafts/a.md", "b.bin")
    source = LocalSource(tmp_path, include=["*.md"], exclude=["drafts"])
    with pytest.raises(SettingsError, match=r"is left out of source .*include or exclude"):
        list(source.scan(prefix))


@pytest.mark.parametrize(("name", "problem"), [("missing", "does not exist"), ("file", "is not a folder")])
def test_source_that_is_no_folder_is_a_settings_error(tmp_path, name, problem):
    write(tmp_path, "file")
    with pytest.raises(SettingsError, match=problem):
        list(LocalSource(tmp_path / name).scan(""))


# --- links


def test_links_are_followed_to_files_inside_and_nowhere_else(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(root, "a.md", "sub/b.md")
    write(outside, "secret.md")
    (root / "inside.md").symlink_to("sub/b.md")
    (root / "to-secret.md").symlink_to(outside / "secret.md")
    (root / "to-outside").symlink_to(outside)
    (root / "to-folder").symlink_to(root / "sub")
    (root / "broken.md").symlink_to("nothing.md")
    (root / "loop.md").symlink_to("loop.md")
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    (root / "sub" / "up").symlink_to(root)
    source = LocalSource(root)
    assert listed(source) == ["a.md", "inside.md", "sub/b.md"]
    inside = next(item for item in source.scan("") if item.path == "inside.md")
    assert source.fetch(inside)[1] == b"sub/b.md"


def test_file_that_became_a_link_out_is_not_read(tmp_path):
    root = tmp_path / "root"
    write(root, "a.md")
    write(tmp_path, "secret.md")
    source = LocalSource(root)
    item = next(iter(source.scan("")))
    (root / "a.md").unlink()
    (root / "a.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(FileNotFoundError):
        source.fetch(item)
    with pytest.raises(FileNotFoundError):
        source.hash("a.md")


def test_pipes_and_sockets_are_no_documents(tmp_path):
    os.mkfifo(tmp_path / "pipe.md")
    assert listed(LocalSource(tmp_path)) == []


# --- names

NAMES = [
    pytest.param(b"caf\xe9.md", "caf\\xe9.md", id="latin-1"),
    pytest.param(b"\xff\xfe\x80", "\\xff\\xfe\\x80", id="no-text-at-all"),
    pytest.param(b"back\\xe9.md", "back\\x5cxe9.md", id="looks-like-an-escape"),
    pytest.param(b"\\x5cxe9\xe9", "\\x5cx5cxe9\\xe9", id="looks-like-an-escaped-escape"),
    pytest.param(b"back\\slash.md", "back\\slash.md", id="backslash"),
    pytest.param(b"box.zip!", "box.zip\\x21", id="mark-of-an-archive"),
    pytest.param(b"box.TAR.gz!", "box.TAR.gz\\x21", id="mark-of-another-archive"),
    pytest.param(b"box.zip\\x21", "box.zip\\x5cx21", id="looks-like-an-escaped-mark"),
    pytest.param(b"wow!", "wow!", id="mark-of-nothing"),
    pytest.param(b"per%E9cent.md", "per%E9cent.md", id="percent"),
    pytest.param("größe 🙂.md".encode(), "größe 🙂.md", id="utf-8"),
    pytest.param("e\u0301.md".encode(), "e\u0301.md", id="decomposed"),
    pytest.param(b"new\nline.md", "new\nline.md", id="line-feed"),
    pytest.param(b"quo'te\".md", "quo'te\".md", id="quotes"),
    pytest.param(b"n" * 252 + b".md", "n" * 252 + ".md", id="longest"),
]


@pytest.mark.parametrize(("raw", "path"), NAMES)
def test_any_name_is_listed_as_valid_text_and_read_again(tmp_path, raw, path):
    folder = tmp_path / (os.fsdecode(raw) if len(raw) < 100 else "sub")
    folder.mkdir()
    (folder / os.fsdecode(raw)).write_bytes(b"content")
    source = LocalSource(tmp_path)
    (item,) = source.scan("")
    parent = path if len(raw) < 100 else "sub"
    assert item.path == f"{parent}/{path}"
    item.path.encode("utf-8")
    assert source.fetch(item) == (item, b"content")
    assert source.hash(item.path) == ids.content_hash(b"content")
    assert Path(url2pathname(urlsplit(item.uri).path)).name.encode("utf-8", "replace")
    assert os.fsencode(native(printable(os.fsdecode(raw)))) == raw
    assert [each.path for each in source.scan(parent)] == [item.path]
    assert [each.path for each in source.scan(item.path)] == [item.path]


def test_names_that_look_alike_stay_different_documents(tmp_path):
    for raw in (b"caf\xe9", b"caf\\xe9", b"caf\\x5cxe9", "café".encode()):
        (tmp_path / os.fsdecode(raw)).write_bytes(raw)
    source = LocalSource(tmp_path)
    contents = {item.path: source.fetch(item)[1] for item in source.scan("")}
    assert contents == {
        "caf\\xe9": b"caf\xe9",
        "caf\\x5cxe9": b"caf\\xe9",
        "caf\\x5cx5cxe9": b"caf\\x5cxe9",
        "café": "café".encode(),
    }


def test_folder_deeper_than_the_system_allows_is_reported(tmp_path):
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        here, above = os.open("d" * 250, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(here)
    found = list(LocalSource(tmp_path).scan(""))
    assert [type(each) for each in found] == [Unlisted]
    assert "File name too long" in found[0].detail


# --- change and loss


def test_time_beyond_the_calendar_does_not_hide_a_file(tmp_path):
    write(tmp_path, "a.md")
    try:
        os.utime(tmp_path / "a.md", (2**40, 2**40))
    except (OSError, OverflowError):
        pytest.fail("this file system cannot hold the time that the test needs")
    assert listed(LocalSource(tmp_path)) == ["a.md"]


def with_inode(status, inode):
    times = ("st_atime", "st_mtime", "st_ctime", "st_atime_ns", "st_mtime_ns", "st_ctime_ns")
    return os.stat_result((status.st_mode, inode, *status[2:10]), {name: getattr(status, name) for name in times})


@pytest.mark.parametrize("inodes", [True, False])
def test_file_of_another_inode_is_another_file_unless_the_settings_say_otherwise(tmp_path, monkeypatch, inodes):
    """Two folders unpacked in one clock tick have files with the same times."""
    write(tmp_path, "a.md")
    source = LocalSource(tmp_path, inodes=inodes)
    (before,) = source.scan("")
    real = os.stat

    def other(path, **options):
        status = real(path, **options)
        return with_inode(status, status.st_ino + 1)

    monkeypatch.setattr(os, "stat", other)
    (now,) = source.scan("")
    assert (now.size, now.modified_at) == (before.size, before.modified_at)
    assert (now.etag != before.etag) == inodes


def test_file_whose_change_time_moved_is_looked_at(tmp_path):
    write(tmp_path, "a.md")
    source = LocalSource(tmp_path)
    (before,) = source.scan("")
    (tmp_path / "a.md").chmod(0o600)
    (now,) = source.scan("")
    assert (now.size, now.modified_at) == (before.size, before.modified_at)
    assert now.etag != before.etag


def test_file_that_vanished_after_the_scan_is_a_file_not_found(tmp_path):
    write(tmp_path, "a.md")
    source = LocalSource(tmp_path)
    (item,) = source.scan("")
    (tmp_path / "a.md").unlink()
    with pytest.raises(FileNotFoundError):
        source.fetch(item)


def test_file_that_changed_after_the_scan_is_returned_as_read(tmp_path):
    write(tmp_path, "a.md")
    source = LocalSource(tmp_path)
    (item,) = source.scan("")
    (tmp_path / "a.md").write_text("longer than before")
    now, content = source.fetch(item)
    assert content == b"longer than before"
    assert (now.path, now.size) == ("a.md", len(content))
    assert now.etag != item.etag
    assert [now] == list(source.scan(""))


def test_file_that_keeps_changing_while_it_is_read_is_transient(tmp_path, monkeypatch):
    write(tmp_path, "a.md")
    source = LocalSource(tmp_path)
    (item,) = source.scan("")
    real = os.fstat

    def growing(descriptor):
        status = real(descriptor)
        with (tmp_path / "a.md").open("a") as stream:
            stream.write("more")
        return status

    monkeypatch.setattr(os, "fstat", growing)
    with pytest.raises(TransientError, match="changed-while-read"):
        source.fetch(item)


WITHOUT_OVERRIDE = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from parquetry.errors import SettingsError
from parquetry.sources.local.source import LocalSource
root = Path(sys.argv[1])
source = LocalSource(root)
for prefix in ("", "closed/b.md"):
    for found in sorted(source.scan(prefix), key=lambda each: each.path):
        print(type(found).__name__, found.path, getattr(found, "detail", ""))
try:
    source.hash("locked.md")
except PermissionError as error:
    print("hash", type(error).__name__)
try:
    list(LocalSource(root / "closed" / "inner").scan(""))
except SettingsError as error:
    print(error)
"""


def test_what_may_not_be_seen_is_reported_and_never_taken_for_gone(tmp_path):
    write(tmp_path, "open/a.md", "closed/b.md", "closed/inner/c.md", "locked.md")
    (tmp_path / "closed").chmod(0)
    (tmp_path / "locked.md").chmod(0)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_OVERRIDE, tmp_path, *filter(None, sys.path)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=obey_permissions,
    )
    (tmp_path / "closed").chmod(0o755)
    assert done.stdout.splitlines() == [
        f"Unlisted closed cannot list {tmp_path}/closed: Permission denied",
        "Item locked.md ",
        "Item open/a.md ",
        f"Unlisted closed/b.md cannot read the properties of {tmp_path}/closed/b.md: Permission denied",
        "hash PermissionError",
        f"source folder {tmp_path}/closed/inner cannot be opened: Permission denied",
    ], done.stderr
