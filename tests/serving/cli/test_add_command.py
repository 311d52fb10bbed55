"""Files, pages and texts are handed in."""

import gzip
import io
import json
import sys

import pytest

from parquetry.settings.sections import parse_settings
from parquetry.sources.uploads.store import UploadStore
from tests.servers.web_server import Page, WebServer
from tests.serving.program import found, settle

pytestmark = pytest.mark.slow


@pytest.fixture
def typed(monkeypatch):
    """Set the standard input of the next command."""

    def say(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return say


def uploads(desk, namespace="default"):
    """Return the uploads of a namespace by path."""
    store = UploadStore(parse_settings({"corpus": {"root": str(desk.folder / "corpus")}}, "test"))
    return {upload.path: upload for upload in store.each(namespace)}


def added(desk):
    return sorted(uploads(desk))


def test_text_is_kept_and_found(desk):
    told = desk("add", "--text", "# Veneer\n\nVeneer is pressed at ninety degrees.", "--json").json
    assert (told["documents"]["scanned"], told["documents"]["added"]) == (1, 1)
    assert found(desk, "pressed degrees") == ["# Veneer\n\nVeneer is pressed at ninety degrees."]
    (name,) = added(desk)
    assert name.startswith("Veneer-Veneer-is-pressed-at-ninety-")


def test_compressed_file_is_found_by_the_text_in_it(desk):
    (desk.folder / "veneer.md.gz").write_bytes(gzip.compress(b"Veneer is pressed at ninety degrees."))
    assert desk("add", str(desk.folder / "veneer.md.gz"), "--json").json["documents"]["added"] == 1
    assert found(desk, "pressed degrees") == ["Veneer is pressed at ninety degrees."]
    assert added(desk) == ["veneer.md.gz"]


def test_same_text_again_is_the_same_document(desk):
    desk("add", "--text", "Veneer is pressed.")
    assert desk("add", "--text", "Veneer is pressed.", "--json").json["documents"]["unchanged"] == 1
    assert len(added(desk)) == 1


def test_named_text_is_replaced_by_the_next_of_its_name(desk, typed):
    typed("Höhe: 640 mm".encode())
    assert desk("add", "-", "--name", "table").code == 0
    typed("Höhe: 700 mm".encode())
    assert desk("add", "-", "--name", "table", "--json").json["documents"]["changed"] == 1
    assert added(desk) == ["table.md"]
    assert found(desk, "Höhe") == ["Höhe: 700 mm"]


def test_added_text_stays_through_refreshes_and_can_be_reindexed_and_removed(desk):
    settle(desk)
    desk("add", "--text", "Veneer is pressed.", "--name", "veneer")
    assert desk("refresh", "--direct", "--json").json["documents"]["removed"] == 0
    assert found(desk, "veneer") == ["Veneer is pressed."]
    assert desk("reindex", "--direct", "veneer.md", "--json").json["documents"]["changed"] == 1
    removed = desk("remove", "veneer.md")
    assert "removed veneer.md, and deleted its bytes" in removed.stdout
    assert added(desk) == []
    assert desk("refresh", "--direct").code == 0
    assert found(desk, "veneer") == []


def test_file_is_taken_in_alone_and_its_failure_is_the_exit_code(desk, tmp_path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "memo.txt").write_text("The veneer press is repaired.")
    (inbox / "other.txt").write_text("not asked for")
    assert desk("add", inbox / "memo.txt", "--json").json["documents"]["scanned"] == 1
    assert found(desk, "veneer press") == ["The veneer press is repaired."]
    (inbox / "bad.docx").write_bytes(b"PK\x03\x04 no document")
    assert desk("add", inbox / "bad.docx").code == 1


def test_file_of_a_source_is_refreshed_there(desk):
    settle(desk)
    desk.write("new.md", "Veneer is new.")
    told = desk("add", "docs/new.md", "--json").json
    assert told["documents"]["added"] == 1
    assert desk("refresh", "--direct", "--json").json["documents"]["added"] == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "name files, URLs or - for standard input, or give --text"),
        (["oak.txt", "--text", "x"], "name files, URLs or - for standard input, or give --text"),
        (["docs"], "docs is no single document; `parquetry refresh docs` takes all that is in it"),
        (["nowhere.txt"], "nowhere.txt is neither a folder or file"),
        (["docs/oak.txt", "--name", "x"], "docs/oak.txt belongs to source docs, which gives it its name"),
        (["docs/oak.txt", "--tag", "x"], "docs/oak.txt belongs to source docs"),
        (["a.txt", "b.txt", "--name", "x"], "--name is for one document"),
        (["--text", "x", "--metadata", "author"], "--metadata 'author' has no value; write KEY=VALUE"),
        (["--text", "x", "--visibility", "individual"], "--visibility individual needs --user"),
        (["--text", "x", "--visibility", "organization"], "--visibility organization needs --org"),
        (["--text", "x", "--namespace", "a/b"], "a/b"),
        (["--text", " \n"], "there is no text to add"),
        (["--text", "x", "--name", "../up"], "'../up' is no plain file name"),
        (["--text", "x", "--name", ".hidden"], "'.hidden' is no plain file name"),
    ],
)
def test_wrong_use_says_what_to_do(desk, arguments, problem):
    told = desk("add", *arguments)
    assert told.code == 2
    assert problem in told.complaint


def test_input_that_is_no_text_is_refused(desk, typed):
    typed(b"\xff\xfe\x00")
    assert "standard input is not text in UTF-8" in desk("add", "-").complaint
    assert added(desk) == []


def test_files_of_everywhere_are_handed_in_together(desk, tmp_path):
    for name in ("one.md", "two.txt"):
        (tmp_path / name).write_text(f"The veneer of {name}.")
    told = desk(
        "add", tmp_path / "one.md", tmp_path / "two.txt", "--tag", "wood", "--metadata", "room=3",
        "--metadata", 'who={"name": "Ada"}', "--metadata", "note=a=b", "--user", "ada", "--namespace", "shop", "--json",
    ).json  # fmt: skip
    assert told["documents"]["added"] == 2
    kept = uploads(desk, "shop")
    assert sorted(kept) == ["~ada/one.md", "~ada/two.txt"]
    one = kept["~ada/one.md"]
    assert (one.access.visibility, one.access.tags, one.uploaded_by) == ("individual", ("wood",), "ada")
    assert one.metadata == {"room": 3, "who": {"name": "Ada"}, "note": "a=b"}
    assert found(desk, "veneer", "--user", "ada", "--metadata", "who.name=Ada", "--filename", "one.md") == [
        "The veneer of one.md."
    ]
    assert found(desk, "veneer", "--user", "bob") == []


def test_two_files_of_one_name_are_not_mistaken_for_one(desk, tmp_path):
    (tmp_path / "a").mkdir()
    for file in (tmp_path / "x.md", tmp_path / "a" / "x.md"):
        file.write_text(str(file))
    told = desk("add", tmp_path / "x.md", tmp_path / "a" / "x.md")
    assert (told.code, "two of these are named x.md" in told.complaint) == (2, True)


def test_page_is_fetched_and_what_cannot_be_is_told_beside_the_rest(desk, tmp_path):
    (tmp_path / "memo.txt").write_text("The veneer press is repaired.")
    with WebServer() as server:
        server.pages["/oak"] = Page("<!doctype html><title>Oak</title><p>Oak dries in the kiln for nine weeks.</p>")
        settings = desk.folder / "pages.toml"
        settings.write_text(f'[corpus]\nroot = "corpus"\n[uploads]\nallow = ["{server.place}"]\n')
        told = desk("add", f"{server.url}/oak", f"{server.url}/gone", tmp_path / "memo.txt", "--config", settings)
        address = f"{server.url}/oak"
    assert told.code == 1
    assert "/gone is not added: not-found" in told.complaint
    assert added(desk) == [address, "memo.txt"]
    assert (uploads(desk)[address].kind, uploads(desk)[address].url) == ("url", address)
    assert json.loads(desk("documents", "--json").stdout)["documents"]


def test_forbidden_address_is_refused(desk):
    told = desk("add", "http://169.254.169.254/latest")
    assert (told.code, "forbidden-address" in told.complaint) == (1, True)
    assert "to allow in [uploads]" in told.complaint


def test_text_of_an_earlier_version_is_replaced_where_it_is(desk):
    settle(desk)
    folder = desk.folder / "corpus-added"
    folder.mkdir()
    (folder / "table.md").write_text("Height: 640 mm")
    assert desk("refresh", "--direct", folder).code == 0
    assert desk("add", "--text", "Height: 700 mm", "--name", "table", "--json").json["documents"]["changed"] == 1
    assert found(desk, "height") == ["Height: 700 mm"]
    assert desk("refresh", "--direct", folder, "--json").json["documents"]["unchanged"] == 1
    assert added(desk) == []


def test_uploads_are_forgotten_checked_and_mended(desk):
    settle(desk)
    for user in ("ada", "bob"):
        desk("add", "--text", f"planted{user}", "--name", "secret", "--user", user, "--metadata", f"word=meta{user}")
    desk("add", "--text", "for all", "--name", "shared")
    healthy = desk("doctor", "--json").json
    assert healthy["findings"] == []
    assert desk("forget", "--user", "ada", "--yes", "--json").json["uploads"] == 1
    files = [file for file in (desk.folder / "corpus").rglob("*") if file.is_file()]
    holding = [file for file in files if any(word in file.read_bytes() for word in (b"plantedada", b"metaada"))]
    assert holding == []
    assert sorted(uploads(desk)) == ["shared.md", "~bob/secret.md"]
    (kept,) = (file for file in files if file.exists() and file.read_bytes() == b"for all")
    kept.write_bytes(b"for ALL")
    (kept.parent / f"{'0' * 32}-0000000000000000-shared").write_bytes(b"left behind")
    told = desk("doctor", "--json")
    assert (told.code, {each["check"] for each in told.json["findings"]}) == (1, {"upload-bytes", "upload-left"})
    mended = desk("doctor", "--fix", "--json").json
    assert "the bytes of shared.md; hand it in again" in mended["lost"]
    desk("add", "--text", "for all", "--name", "shared")
    assert desk("doctor", "--json").json["findings"] == []


def test_namespace_that_is_deleted_does_not_come_back(desk):
    settle(desk)
    desk("add", "--text", "of the shop", "--namespace", "shop")
    assert "Deleted the bytes of 1 upload" in desk("namespaces", "delete", "shop", "--yes").stdout
    assert desk("refresh", "--direct", "--json").json["documents"]["added"] == 0
    assert uploads(desk, "shop") == {}
