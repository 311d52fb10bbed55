"""The command that erases: it asks first, reports what it erased, and lists what stays."""

import os
import subprocess

import pytest

from tests.damage import flip_vector
from tests.serving.program import command, found

pytestmark = pytest.mark.slow


@pytest.fixture
def owned(desk):
    """Publish a document of ada's beside those of the desk."""
    (desk.folder / "notes").mkdir()
    (desk.folder / "notes/plan.md").write_text("A plan for the xylophonquartz.")
    with (desk.folder / "parquetry.toml").open("a") as file:
        file.write('[[source]]\nname = "notes"\nuri = "notes"\nvisibility = "individual"\nuser_id = "ada"\n')
    assert desk("refresh", "--direct").code == 0
    return desk


def test_document_of_a_user_leaves_and_others_stay(owned):
    assert found(owned, "xylophonquartz", "--user", "ada")
    told = owned("forget", "--user", "ada", "--yes", "--json").json
    assert told["rows"] == {"documents": 1, "texts": 1, "chunks": 1}
    assert told["version"] == told["version_before"] + 1
    assert (told["files_left"], told["answers_deleted"]) == (0, 0)
    assert told["bytes_deleted"] > 0
    assert found(owned, "xylophonquartz", "--user", "ada") == []
    assert found(owned, "oak")
    assert owned("doctor").code == 0
    told_again = owned("forget", "--user", "ada", "--yes").stdout
    assert "Rows erased: none." in told_again


def test_damaged_file_is_not_written_again_as_if_it_were_whole(owned):
    """Its rows would get a new checksum, and a wrong vector would count as right for ever."""
    owned.write("fir.md", "The fir is light.")
    (owned.folder / "notes/fir.md").write_text("My own view of firs.")
    assert owned("refresh", "--direct").code == 0
    vectors = "SELECT text, vector::FLOAT[] FROM chunks WHERE text = 'The fir is light.'"
    (before,) = owned("sql", vectors, "--json").json["rows"]
    chunks = owned.folder / "corpus" / "chunks"
    damaged = max(chunks.glob("*.parquet"))
    flip_vector(damaged)
    refused = owned("forget", "--user", "ada", "--yes")
    assert refused.code == 4
    assert refused.complaint.startswith(f"the corpus is damaged: {damaged} is not what was written")
    assert damaged.exists()
    assert owned("doctor", "--fix").code == 0
    assert owned("forget", "--user", "ada", "--yes").code == 0
    assert owned("doctor").code == 0
    assert owned("sql", vectors, "--json").json["rows"] == [before]
    assert found(owned, "xylophonquartz", "--user", "ada") == []


def test_people_are_told_what_left_and_what_may_come_back(owned):
    told = owned("forget", "--user", "ada", "--yes").stdout
    assert told.startswith("Rows erased: 1 of documents, 1 of texts, 1 of chunks.\n")
    assert "Earlier versions that held what was erased cannot be read or restored any more." in told
    assert "What sources still hold comes back with the next refresh" in told
    version = owned("history", "--json").json["versions"][1]["version"]
    refused = owned("restore", "--version", version)
    assert (refused.code, "cannot be read any more" in refused.complaint) == (2, True)


def test_nobody_to_ask_and_nothing_agreed_to_is_refused(owned):
    refused = owned("forget", "--user", "ada")
    assert refused.code == 3
    assert "run again with --yes" in refused.complaint
    assert found(owned, "xylophonquartz", "--user", "ada")


@pytest.mark.parametrize(("answer", "code"), [("n", 3), ("y", 0)])
def test_person_is_asked_at_a_terminal(owned, answer, code):
    ours, theirs = os.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = subprocess.run(
        command("forget", "--user", "ada"), stdin=theirs, capture_output=True, text=True, check=False, cwd=owned.folder
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == code, done
    assert "Go on? [y/N]" in done.stderr
    assert bool(found(owned, "xylophonquartz", "--user", "ada")) == (code == 3)


def test_user_without_a_name_is_wrong_use(owned):
    assert owned("forget", "--user", " ", "--yes").complaint == "--user must name a user"
