"""Indexes of many chunks: their rows wait in files until they are sorted, and memory does not grow with the slices."""

from contextlib import closing

import duckdb
import pytest

from parquetry.errors import StorageError
from parquetry.storage.index import building, identities, open_index, waiting, words
from parquetry.storage.index.check import disagreements
from parquetry.storage.index.open_index import attached, in_memory
from tests.storage.index.forward import WORDS, folder, refresh

pytestmark = pytest.mark.slow
LIBRARY = {f"{word} {number}.md": [f"{word} oak", f"ash {number}"] for number, word in enumerate(WORDS * 3)}
SORTED = {
    "segment.postings": ("term, chunk", "term, chunk, doc, tf, length"),
    "parts.identities": ("term, document", "term, document, weight"),
}


@pytest.fixture
def small_slices(monkeypatch):
    """Call it with the number of slices whose rows need no files; they are of two chunks or documents."""

    def set_to(few):
        for module in (words, identities):
            monkeypatch.setattr(module, "SLICE", 2)
            monkeypatch.setattr(module, "FEW_SLICES", few)
        monkeypatch.setattr(identities, "_OPENED_SLICES", 3)
        monkeypatch.setattr(waiting, "_SORTED_ROWS", 7)
        monkeypatch.setattr(open_index, "_FEW_CHUNKS", 0)

    return set_to


@pytest.fixture
def written(monkeypatch):
    """Number of files that the rows of each table waited in."""
    found = {}

    sort_into_index = waiting.WaitingRows.sort_into_index

    def counted(self, *given):
        if self._folder is not None:
            found[self._table] = len(list(self._folder.iterdir()))
        sort_into_index(self, *given)

    monkeypatch.setattr(waiting.WaitingRows, "sort_into_index", counted)
    return found


def rows_of(connection):
    """Return the rows of the sorted tables as they are stored."""
    return {table: connection.execute(f"SELECT {kept} FROM {table}").fetchall() for table, (_, kept) in SORTED.items()}


def test_rows_that_wait_in_files_become_the_same_index(shelf, small_slices, written):
    shelf.publish(LIBRARY)
    with closing(in_memory(shelf.lake.snapshot(), shelf.settings.language)) as usual:
        expected = rows_of(usual.connection)
    assert written == {}
    small_slices(2)
    made = refresh(shelf)
    assert written == {"segment.postings": 30, "parts.identities": 16}
    with attached(made.path, read_only=True) as connection:
        held = rows_of(connection)
        for table, (order, kept) in SORTED.items():
            assert held[table] == connection.execute(f"SELECT {kept} FROM {table} ORDER BY {order}").fetchall()
            assert len(held[table]) == len(expected[table]) > 30
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (1, [])
    assert [each.name for each in made.path.parent.iterdir() if each.name.endswith(".tmp")] == []
    shelf.publish({"new.md": ["birch"]})
    refresh(shelf)
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (2, [])
    assert [text for text, _ in shelf.search("birch")] == ["birch"]


def named(number):
    """Return a word of five letters for a number."""
    return "".join(chr(ord("a") + number // 26**place % 26) for place in range(5))


@pytest.mark.parametrize("is_update", [False, True], ids=["new", "update"])
@pytest.mark.parametrize(("chunks", "words_each"), [(2_500, 60), (9_000, 20)], ids=["one-slice", "two-slices"])
def test_every_word_of_a_thousand_documents_is_in_the_index(shelf, chunks, words_each, is_update):
    """DuckDB 2.0.0 lost a whole row group and more that a transaction wrote to a table after no rows at all: a thousand
    documents were found by none of their words, and no error told so."""
    if is_update:
        shelf.publish({"first.md": ["zzzzz"]})
        refresh(shelf)
    # No chunk has the words of another, but for the first.
    texts = [
        " ".join(map(named, [0, *range(each * words_each + 1, (each + 1) * words_each)])) for each in range(chunks)
    ]
    shelf.publish({f"{start}.md": texts[start : start + 10] for start in range(0, chunks, 10)})
    refresh(shelf)
    with shelf.index() as connection:
        held = connection.execute("SELECT chunk, sum(tf), max(length) FROM parts.postings GROUP BY chunk").fetchall()
    # Each chunk is under the heading "Heading", which counts three times, and is a word of its length.
    assert sorted({tuple(map(int, row[1:])) for row in held})[-1] == (words_each + 3, words_each + 1)
    assert len(held) == chunks + is_update
    for chunk in (0, chunks // 2, chunks - 1):
        assert [text for text, _ in shelf.search(named(chunk * words_each + 1))] == [texts[chunk]]
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (1 + is_update, [])


class Losing:
    """A connection that loses what it inserts into postings and reports it all the same."""

    def __init__(self, connection):
        self._connection = connection

    def execute(self, sql, *given):
        found = self._connection.execute(sql, *given)
        if sql.startswith("INSERT INTO segment.postings "):
            self._connection.execute("DELETE FROM segment.postings WHERE chunk % 3 = 1")
        return found


@pytest.mark.parametrize("few", [0, 100], ids=["files", "table"])
@pytest.mark.parametrize("is_update", [False, True], ids=["new", "update"])
def test_index_that_lacks_rows_is_no_index(shelf, small_slices, monkeypatch, few, is_update):
    if is_update:
        shelf.publish({"first.md": ["yew"]})
        refresh(shelf)
    shelf.publish(LIBRARY)
    small_slices(few)
    sort_into_index = waiting.WaitingRows.sort_into_index

    def losing(self, *given):
        self._connection = Losing(self._connection)
        sort_into_index(self, *given)

    monkeypatch.setattr(waiting.WaitingRows, "sort_into_index", losing)
    with pytest.raises(StorageError, match=r"not complete: DuckDB [\d.]+ kept \d+ of \d+ rows of segment.postings"):
        refresh(shelf)
    assert [each.version for each in folder(shelf).files()] == [1] * is_update
    monkeypatch.undo()
    refresh(shelf)
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (1 + is_update, [])


def test_index_in_memory_and_few_slices_need_no_files(shelf, small_slices, written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shelf.publish(LIBRARY)
    small_slices(30)
    refresh(shelf)
    small_slices(0)
    with closing(in_memory(shelf.lake.snapshot(), shelf.settings.language)):
        pass
    assert written == {}


def test_files_of_an_attempt_with_too_little_memory_are_deleted_before_another(shelf, small_slices, monkeypatch):
    shelf.publish(LIBRARY)
    small_slices(2)
    add, written, left = waiting.WaitingRows.add, building.written, []

    def added(self, query):
        add(self, query)
        if self._folder is not None:
            raise duckdb.OutOfMemoryException("made up")

    def watched(path, *given):
        left.append(sorted(path.parent.glob("*.tmp/*")))
        return written(path, *given)

    monkeypatch.setattr(waiting.WaitingRows, "add", added)
    monkeypatch.setattr(building, "written", watched)
    refresh(shelf)
    assert left == [[], []]
    assert disagreements(shelf.lake.snapshot(), shelf.settings) == (1, [])


def test_tables_of_a_slice_are_gone_when_the_next_is_indexed(shelf, monkeypatch):
    shelf.publish({f"{number}.md": [f"{word} {number} " * 300 for word in WORDS] for number in range(20)})
    held, learn_new = [], words.learn_new

    def learned(connection, language):
        ((amount,),) = connection.execute(
            """SELECT sum(memory_usage_bytes + temporary_storage_bytes) FROM duckdb_memory()
            WHERE tag = 'IN_MEMORY_TABLE'"""
        ).fetchall()
        held.append(int(amount))
        learn_new(connection, language)

    monkeypatch.setattr(words, "SLICE", 10)
    monkeypatch.setattr(words, "learn_new", learned)
    refresh(shelf)
    assert len(held) == 20
    assert held[-1] < 2 * held[2]
