"""A single file, page or text is added."""

import io
import sys

import pytest

from tests.serving.program import found, settle

pytestmark = pytest.mark.slow


@pytest.fixture
def typed(monkeypatch):
    """Set the standard input of the next command."""

    def say(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return say


def added(desk):
    return sorted(file.name for file in (desk.folder / "corpus-added").iterdir())


def test_text_is_kept_beside_the_corpus_and_found(desk):
    told = desk("add", "--text", "# Veneer\n\nVeneer is pressed at ninety degrees.", "--json").json
    assert (told["documents"]["scanned"], told["documents"]["added"]) == (1, 1)
    assert found(desk, "pressed degrees") == ["# Veneer\n\nVeneer is pressed at ninety degrees."]
    (name,) = added(desk)
    assert name.startswith("Veneer-Veneer-is-pressed-at-ninety-")


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
    assert desk("remove", "veneer.md").code == 0
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
        ([], "name a file, a URL or - for standard input, or give --text"),
        (["oak.txt", "--text", "x"], "name a file, a URL or - for standard input, or give --text"),
        (["docs"], "docs is no single document; `parquetry refresh docs` takes all that is in it"),
        (["nowhere.txt"], "nowhere.txt is neither a folder or file"),
        (["docs/oak.txt", "--name", "x"], "--name is for text"),
        (["--text", " \n"], "there is no text to add"),
        (["--text", "x", "--name", "../up"], "'../up' is no plain file name"),
        (["--text", "x", "--name", ".hidden"], "'.hidden' is no plain file name"),
        (["--text", "x", "--corpus", "s3://box/kb"], "s3://box/kb is not on this machine"),
    ],
)
def test_wrong_use_says_what_to_do(desk, arguments, problem):
    told = desk("add", *arguments)
    assert told.code == 2
    assert problem in told.complaint


def test_input_that_is_no_text_is_refused(desk, typed):
    typed(b"\xff\xfe\x00")
    assert "standard input is not text in UTF-8" in desk("add", "-").complaint
    assert not (desk.folder / "corpus-added").exists()
