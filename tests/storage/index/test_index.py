"""The search index: updated at a cost in proportion to the change, with the same result as a rebuild."""

import os
import re
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings

from parquetry.errors import IndexNotWritten
from parquetry.settings.sections import SearchSettings
from parquetry.storage.index import build as index_build
from parquetry.storage.index import building, open_index, wear
from parquetry.storage.index import folder as index_folder
from parquetry.storage.index import identities as index_identities
from parquetry.storage.index import words as index_words
from parquetry.storage.index.check import disagreements
from parquetry.storage.index.folder import KEPT
from parquetry.storage.index.open_index import attached, in_memory
from parquetry.storage.search.searcher import Searcher
from tests.storage.index.forward import STEPS, WORDS, bring_forward, folder, refresh, texts
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow


# --- an update equals a rebuild


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
@example([("write", 0, 3), ("retitle", 0, 2), ("skip-index", 0, 0), ("retitle", 0, 4)])
def test_index_brought_forward_answers_as_one_built_anew(tmp_path_factory, steps):
    bring_forward(Shelf(tmp_path_factory.mktemp("corpus")), steps)


def test_restored_version_is_indexed_again(shelf):
    shelf.publish({"a.md": ["oak first"]})
    before = shelf.rows()
    shelf.publish({"a.md": ["elm second"]})
    refresh(shelf)
    shelf.lake.publish(shelf.lake.snapshot(), before, "restore")
    assert [text for text, _ in shelf.search("oak")] == ["oak first"]
    assert shelf.search("elm") == []


def test_row_that_reaches_the_index_late_does_not_replace_a_later_one(shelf):
    shelf.publish({"a.md": ["oak first"]})
    early = set(shelf.lake.snapshot().files["documents"])
    shelf.publish({"a.md": ["elm second"]})
    second = shelf.lake.snapshot()
    rest = [file for file in second.files["documents"] if file not in early]
    folder(shelf).refresh(replace(second, files={**second.files, "documents": rest}))
    shelf.publish({"b.md": ["ash"]})
    refresh(shelf)
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (3, [])
    assert [text for text, _ in shelf.search("elm")] == ["elm second"]
    assert shelf.search("oak") == []


def test_chunks_are_read_once_however_many_publishes_follow(shelf, monkeypatch):
    """Cost grows with the change: the words of old chunks are not counted again."""
    shelf.publish({f"{number}.md": texts(number) for number in range(20)})
    refresh(shelf)
    counted = []
    learn = index_words.learn_new

    def noting(connection, language):
        counted.append(connection.execute("SELECT count(DISTINCT chunk) FROM tokenised").fetchall()[0][0])
        learn(connection, language)

    monkeypatch.setattr(index_words, "learn_new", noting)
    shelf.publish({"new.md": ["one", "two"]})
    refresh(shelf)
    assert counted == [2]


def test_worn_index_is_built_again(shelf, monkeypatch):
    monkeypatch.setattr(wear, "WORN_ROWS", 3)
    for turn in range(6):
        shelf.publish({"a.md": [f"oak {turn}", "elm", "ash"]})
        made = refresh(shelf)
    with attached(made.path, read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM parts.chunks").fetchall()[0][0] < 18
    assert [text for text, _ in shelf.search("oak")] == ["oak 5"]


def test_second_model_gets_vectors_of_its_own(shelf):
    shelf.publish({"a.md": ["oak"]})
    refresh(shelf)
    shelf.publish({"b.md": ["elm"]}, embedder="other@2", namespace="hr")
    with shelf.index() as connection:
        assert Searcher(connection).embedders() == ["model@4", "other@2"]
        assert connection.execute("SELECT filename, len(vector) FROM chunks ORDER BY ALL").fetchall() == [
            ("a.md", 4),
            ("b.md", 2),
        ]
        (hit,) = Searcher(connection).search("", {"other@2": np.ones(2, np.float32)}, "vector", 5)
    assert hit.row["filename"] == "b.md"


# --- files


def indexes(shelf):
    return sorted(path.name for path in folder(shelf).path.glob("index-*.duckdb"))


def test_two_versions_are_kept_and_the_older_file_becomes_the_next(shelf):
    inodes = []
    for turn in range(6):
        shelf.publish({"a.md": [f"oak {turn}"]})
        inodes.append(refresh(shelf).path.stat().st_ino)
        assert len(indexes(shelf)) <= KEPT
    assert len(set(inodes[1:])) == 2
    assert inodes[2] == inodes[4] != inodes[3] == inodes[5]
    assert indexes(shelf) == ["index-5.duckdb", "index-6.duckdb"]


def test_reader_keeps_its_version_while_others_switch(shelf):
    shelf.publish({"a.md": ["oak 0"]})
    reader = folder(shelf).open(shelf.lake.snapshot())
    for turn in range(1, 6):
        shelf.publish({"a.md": [f"oak {turn}"]})
        refresh(shelf)
        (hit,) = Searcher(reader.session()).search("oak", {}, "text", 5)
        assert hit.row["text"] == "oak 0"
        # A file that a reader holds open does not become the next one, and must not be left over for ever.
        assert len(indexes(shelf)) <= KEPT
    assert [text for text, _ in shelf.search("oak")] == ["oak 5"]
    reader.close()


def test_version_whose_file_is_kept_is_read_from_it(shelf):
    for turn in range(1, 4):
        shelf.publish({"a.md": [f"oak {turn}"]})
        refresh(shelf)
    opened = folder(shelf).open_version(shelf.lake.snapshot(2))
    (hit,) = Searcher(opened.session()).search("oak", {}, "text", 5)
    assert (opened.version, hit.row["text"]) == (2, "oak 2")
    opened.close()
    assert folder(shelf).open_version(shelf.lake.snapshot(1)) is None


def test_nothing_is_done_for_a_version_that_is_indexed(shelf):
    shelf.publish({"a.md": ["oak"]})
    made = refresh(shelf)
    stamp = made.path.stat().st_mtime_ns
    assert refresh(shelf) == made
    assert made.path.stat().st_mtime_ns == stamp


def test_leftovers_of_a_killed_refresh_go_and_nothing_else(shelf):
    shelf.publish({"a.md": ["oak"]})
    refresh(shelf)
    (folder(shelf).path / "building-1.duckdb").write_bytes(b"half")
    (folder(shelf).path / "building-1.duckdb.wal").write_bytes(b"half")
    shelf.publish({"a.md": ["elm"]})
    refresh(shelf)
    names = {path.name for path in folder(shelf).path.iterdir()}
    assert names == {"index-1.duckdb", "index-1.lease", "index-2.duckdb", "index-2.lease", "refresh.lock"}


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "other-format"])
def test_index_that_cannot_be_trusted_is_built_again(shelf, damage):
    shelf.publish({"a.md": ["oak"]})
    made = refresh(shelf)
    if damage == "other-format":
        with attached(made.path, read_only=False) as connection:
            connection.execute("UPDATE parts.meta SET value = '0' WHERE key = 'format'")
    else:
        content = {"cut": made.path.read_bytes()[:9000], "noise": os.urandom(9000), "empty": b""}[damage]
        made.path.write_bytes(content)
    assert [text for text, _ in shelf.search("oak")] == ["oak"]
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (1, [])


def test_deleted_index_loses_nothing(shelf):
    shelf.publish({"a.md": ["oak"]})
    made = refresh(shelf)
    made.path.unlink()
    made.lease.unlink()
    assert [text for text, _ in shelf.search("oak")] == ["oak"]


def test_index_whose_lease_a_power_cut_took_is_none_and_is_cleared_away(shelf):
    shelf.publish({"a.md": ["oak"]})
    refresh(shelf)
    shelf.publish({"b.md": ["elm"]})
    made = refresh(shelf)
    made.lease.unlink()
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (1, [])
    shelf.publish({"c.md": ["ash"]})
    refresh(shelf)
    names = {path.name for path in made.path.parent.iterdir()}
    assert names == {"index-1.duckdb", "index-1.lease", "index-3.duckdb", "index-3.lease", "refresh.lock"}


def test_another_language_builds_the_index_again_and_no_language_takes_what_is_there(shelf):
    shelf.publish({"a.md": ["they were running"]})
    shelf.settings = SearchSettings(language="english")
    assert [text for text, _ in shelf.search("run")] == ["they were running"]
    shelf.settings = SearchSettings()
    assert [text for text, _ in shelf.search("run")] == ["they were running"]
    shelf.settings = SearchSettings(language="none")
    assert shelf.search("run") == []
    shelf.settings = SearchSettings()
    assert shelf.search("run") == []


def test_folder_of_the_settings_holds_each_corpus_apart(shelf, tmp_path):
    shelf.settings = SearchSettings(language="none", index_folder=str(tmp_path / "indexes"))
    shelf.publish({"a.md": ["oak"]})
    made = refresh(shelf)
    assert made.path.parent.parent == tmp_path / "indexes"
    assert not (shelf.root / "index").exists()


# --- the doctor


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("UPDATE parts.documents SET visibility = 'individual'", "documents"),
        ("DELETE FROM parts.documents WHERE path = 'a.md'", "documents"),
        ("UPDATE segment.chunks SET text = 'oaf' WHERE text = 'oak'", "chunks or vectors"),
        ("UPDATE segment.chunks SET vector_1 = [1, 2, 3, 4]::FLOAT[4] WHERE text = 'oak'", "chunks or vectors"),
        ("DELETE FROM segment.codes_1 WHERE chunk = 0", "sign bits"),
        ("UPDATE segment.codes_1 SET b0 = xor(b0, 1)", "sign bits"),
        ("UPDATE segment.postings SET tf = tf + 1", "words"),
        ("DELETE FROM segment.postings WHERE chunk = 1", "words"),
        ("UPDATE parts.identities SET weight = 0.1 WHERE document = 0", "identity"),
        ("DELETE FROM parts.identities WHERE document = 1", "identity"),
        ("UPDATE parts.documents SET number = 1 - number", "identity"),
        ("INSERT INTO parts.identities VALUES (0, 7, 0.5)", "identity"),
    ],
)
def test_doctor_finds_what_the_index_holds_otherwise(shelf, damage, what):
    shelf.publish({"a.md": ["oak", "elm tree"], "b.md": ["ash"]})
    made = refresh(shelf)
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (1, [])
    with attached(made.path, read_only=False) as connection:
        connection.execute(damage)
    _, found = disagreements(shelf.lake.snapshot(), shelf.settings)
    assert [each for each in found if what in each.what]


@pytest.fixture
def little(monkeypatch):
    """Call it with the memory for short chunks, for others, and for the rest; no number of chunks is few then."""

    def set_to(*memory):
        for module in (building, open_index):
            monkeypatch.setattr(module, "BUILD_MEMORY", memory)
        monkeypatch.setattr(open_index, "_FEW_CHUNKS", 0)

    return set_to


@pytest.mark.parametrize("text", ["oak and elm", "oak and elm " * 25], ids=["short", "long"])
def test_index_that_needs_more_memory_than_usual_is_built_with_more(shelf, little, text, caplog):
    shelf.publish({"a.md": [text]})
    little("1MB", "1MB", "1MB")
    with pytest.raises(IndexNotWritten, match="Out of Memory"):
        refresh(shelf)
    caplog.clear()
    little("1MB", "1MB", "1GB")
    refresh(shelf)
    (told,) = caplog.messages
    assert re.fullmatch("the search index did not fit into memory and is written again: Out of Memory.*", told)
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (1, [])


@pytest.mark.parametrize("publishes", [1, 2], ids=["copy", "spare"])
def test_update_that_needs_more_memory_than_usual_begins_again_with_more(shelf, little, monkeypatch, publishes, caplog):
    for number in range(publishes):
        shelf.publish({f"{number}.md": ["oak"]})
        refresh(shelf)
    monkeypatch.setattr(index_folder, "built", lambda *_: pytest.fail("built anew"))
    tried, update = [], index_folder.update
    monkeypatch.setattr(index_folder, "update", lambda *given: tried.append(given[-1]) or update(*given))
    little("1MB", "1MB", "1GB")
    shelf.publish({"a.md": ["elm"]})
    refresh(shelf)
    assert tried == [open_index.memory_of, None]
    assert len(caplog.messages) == 1
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (publishes + 1, [])
    assert [text for text, _ in shelf.search("elm")] == ["elm"]


def test_memory_of_an_index_follows_the_texts_that_are_new(shelf, monkeypatch):
    asked = []
    for module in (building, index_folder):
        monkeypatch.setattr(module, "memory_of", lambda *amounts: asked.append(amounts) or "1GB")
    shelf.publish({"a.md": ["oak", "elm"], "b.md": ["ash"]})
    refresh(shelf)
    shelf.publish({"c.md": ["birch", "beech", "holly"]})
    refresh(shelf)
    assert asked == [(3, 10), (3, 17)]


@pytest.mark.parametrize(
    ("chunks", "characters", "expected"),
    [
        (0, 0, "1GB"),
        (2_000, 100_000, "1GB"),
        (2_001, 100_000, "64MB"),
        (20_000, 5_000_000, "64MB"),
        (20_000, 5_000_001, "128MB"),
        (400_000, 60_000_000, "64MB"),
        (400_000, 60_000_001, "128MB"),
        (400_001, 60_000_000, "128MB"),
    ],
)
def test_short_chunks_are_indexed_in_less_memory_than_long_ones(chunks, characters, expected):
    assert open_index.memory_of(chunks, characters) == expected


def test_revisions_do_not_depend_on_how_many_are_counted_at_a_time(shelf, monkeypatch):
    shelf.publish({f"{number}.md": [f"{word} oak"] * (1 + number % 3) for number, word in enumerate(WORDS)})
    found = []
    for at_a_time in (index_build._REVISIONS, 3):
        monkeypatch.setattr(index_build, "_REVISIONS", at_a_time)
        with closing(in_memory(shelf.lake.snapshot(), "english")) as made:
            found.append(made.connection.execute("FROM parts.revisions ORDER BY doc").fetchall())
    assert len(found[0]) == len(WORDS)
    assert {chunks for *_, chunks, _ in found[0]} == {1, 2, 3}
    assert all(length > 0 for *_, length in found[0])
    assert found[0] == found[1]


def test_identities_do_not_depend_on_how_many_are_made_at_a_time(tmp_path, monkeypatch):
    shelf = Shelf(tmp_path)
    shelf.publish({f"report {word} {number}.md": [f"{word} oak " * 60, word] for number, word in enumerate(WORDS)})
    found = []
    for size in (index_identities.SLICE, 3):
        monkeypatch.setattr(index_identities, "SLICE", size)
        with closing(in_memory(shelf.lake.snapshot(), "english")) as made:
            found.append(
                made.connection.execute(
                    "SELECT stem, document, weight FROM parts.identities JOIN parts.terms USING (term) ORDER BY ALL"
                ).fetchall()
            )
    assert len(found[0]) > len(WORDS)
    assert found[0] == found[1]
