"""A corpus and a settings file of an earlier program, as they were written then: `earlier_corpus.tar.xz`.

Its program was the last one with the top-level packages `knowledge` and `storage`. It published four versions: four
documents and an empty one, a session of two statements, a removal, and a session that contradicts the first.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from parquetry.model import Access, Item
from parquetry.serving.cli.main import run
from parquetry.sources import providers
from tests import shelf_source
from tests.shelf_source import SHELVES, ShelfSource

pytestmark = pytest.mark.slow

ARCHIVE = Path(__file__).with_name("earlier_corpus.tar.xz")


class Chats(ShelfSource):
    """Sessions of a member of an organization."""

    def _item(self, path: str) -> Item:
        return replace(super()._item(path), access=Access("organization", user_id="ada", org_id="acme"))


def chat(first: int, *said: str) -> str:
    messages = []
    for number, text in enumerate(said):
        at = first + 3600 * number
        messages.append({"role": "user", "content": text, "created_at": at})
        messages.append({"role": "assistant", "content": "I see.", "created_at": at + 60})
    return json.dumps({"messages": messages})


@pytest.fixture
def corpus(tmp_path, monkeypatch) -> Path:
    """The folder of the corpus, with the sources as they were at its last version."""
    with tarfile.open(ARCHIVE) as archive:
        # As an attribute: the first releases of Python 3.11 know no such parameter.
        archive.extraction_filter = lambda member, _: member
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(providers.BUILT_IN, "shelf", f"{shelf_source.__name__}:open_shelf")
    glaze = "<html><head><title>Glaze</title></head><body><h1>Glaze</h1><p>Ash glaze is sieved twice.</p></body></html>"
    kiln, leave = "# Kiln\n\nThe kiln is fired at 960 degrees.\n", "name,days\nAda,30\nBob,28\n"
    monkeypatch.setitem(SHELVES, "docs", ShelfSource(kiln__md=kiln, leave__csv=leave, glaze__html=glaze, empty__txt=""))
    tea = "individual/preference: Tea: I drink green tea in the morning."
    fridge = "organization/fact: Fridge: The fridge is cleaned on Fridays."
    no_tea = "individual/preference: Tea: I do not drink tea, not any more."
    chats = Chats(a__json=chat(1767225600, tea, fridge), b__json=chat(1768225600, no_tea))
    monkeypatch.setitem(SHELVES, "chats", chats)
    return tmp_path / "corpus"


def asked(capsys, *command: str) -> dict:
    code = run([*command, "--json"])
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, "")
    return json.loads(printed.out)


TABLES = ("documents", "chunks", "texts", "entries", "decisions")


def files_of(corpus: Path, names: Sequence[str] = (*TABLES, "index")) -> dict[str, bytes]:
    """Return path -> content of everything that a publish changes."""
    tables = [corpus / name for name in names]
    return {str(file): file.read_bytes() for table in tables for file in table.rglob("*") if file.is_file()}


def test_it_is_opened_and_searched(corpus, capsys):
    before = files_of(corpus, TABLES)
    (hit,) = asked(capsys, "search", "kiln degrees", "-k", "1")["results"]
    assert (hit["path"], hit["text"]) == ("kiln.md", "# Kiln\n\nThe kiln is fired at 960 degrees.")
    # The former spelling of an option.
    (entry,) = asked(capsys, "search", "--what", "entries", "--user", "ada", "-k", "1", "tea")["results"]
    assert entry["text"].startswith("Tea: ")
    (hit,) = asked(capsys, "search", "lift", "-k", "1", "--mode", "text", "--version", "1")["results"]
    assert hit["path"] == "gone.txt"
    assert asked(capsys, "doctor")["healthy"]
    assert files_of(corpus, TABLES) == before


def test_index_is_built_anew_once(corpus, capsys):
    """It has the form of the earlier program, which split words in other ways."""
    earlier = files_of(corpus, ["index"])
    asked(capsys, "search", "kiln degrees")
    built = files_of(corpus, ["index"])
    assert built != earlier
    asked(capsys, "search", "kiln degrees")
    assert files_of(corpus, ["index"]) == built


def test_refresh_reads_again_what_is_extracted_better_now_and_then_nothing(corpus, capsys):
    documents = asked(capsys, "refresh", "--direct")
    assert documents["version"] == 5
    assert documents["documents"]["unchanged"] + documents["documents"]["changed"] == 3
    assert documents["chunks"]["embedded"] == 0
    SHELVES["docs"].fetched.clear()
    before = files_of(corpus)
    documents = asked(capsys, "refresh", "--direct")
    assert (documents["version"], documents["documents"]["unchanged"]) == (5, 3)
    sessions = asked(capsys, "sessions", "refresh", "--direct")
    assert (sessions["version"], sessions["sessions"]["unchanged"]) == (5, 2)
    assert [SHELVES[name].fetched for name in ("docs", "chats")] == [[], []]
    assert files_of(corpus) == before


def test_decisions_are_undone_and_versions_restored(corpus, capsys):
    (contradiction,) = [each for each in asked(capsys, "decisions")["decisions"] if each["kind"] == "contradicts"]
    undone = asked(capsys, "undo", contradiction["decision_id"])
    assert undone["version"] == 5
    entries = asked(capsys, "entries", "--user", "ada")["entries"]
    assert [each["text"] for each in entries] == ["Tea: I drink green tea in the morning."]
    assert asked(capsys, "restore", "--version", "1")["version"] == 6
    assert {each["path"] for each in asked(capsys, "documents")["documents"]} >= {"gone.txt", "kiln.md"}
    assert asked(capsys, "refresh", "--direct")["documents"]["removed"] == 1
    assert asked(capsys, "doctor")["healthy"]
