"""An index in memory holds what its file holds, version after version."""

import threading
import weakref
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from parquetry.model import Access
from parquetry.storage.database import rows
from parquetry.storage.index import vector_memory_records, vector_memory_space
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.hit_columns import CHUNK_COLUMNS
from parquetry.storage.index.ranking import frequencies, text_scores
from parquetry.storage.index.signatures import query_signature, signatures_of
from parquetry.storage.index.vector_memory import VectorMemories, vector_memories
from parquetry.storage.index.vector_memory_keys import ChunkKeys
from parquetry.storage.index.vector_memory_postings import by_term
from parquetry.storage.index.vector_memory_records import BLOCK, RecordBlocks
from parquetry.storage.index.vector_memory_scan import nearest_codes
from parquetry.storage.index.vector_memory_space import NONE
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.visible import RELATION, Visible
from tests.storage.shelf import EMBEDDER, Shelf

pytestmark = pytest.mark.slow


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path / "corpus")


def opened(shelf):
    snapshot = shelf.lake.snapshot()
    return IndexFolder(snapshot.layout, shelf.settings).open(snapshot)


def held_vectors(memory, embedder):
    """Return (revision, index) -> vector of each chunk that the memory holds."""
    space, keys = memory.spaces[embedder], memory.keys
    slots = np.flatnonzero(space.chunks != NONE)
    chunks = space.chunks[slots]
    assert np.array_equal(space.slots[chunks], slots)
    assert np.array_equal(space.docs[slots], memory.docs[chunks])
    return {
        (int(keys.revisions[chunk]), int(keys.places[chunk])): space.buffers.vectors[slot].tolist()
        for slot, chunk in zip(slots, chunks, strict=True)
    }


def stored_vectors(session, number):
    """Return (revision, index) -> vector of each live chunk of the file."""
    found = session.execute(
        f"""SELECT revision, chunk_index, vector_{number} FROM parts.chunks
        WHERE vector_{number} IS NOT NULL AND doc IN (SELECT doc FROM parts.revisions)"""
    ).fetchall()
    return {(revision, index): list(vector) for revision, index, vector in found}


def check(index, memory):
    """Compare a memory with the file that it was read from."""
    session = index.session()
    spaces = session.execute("SELECT space, embedder FROM parts.spaces").fetchall()
    assert set(memory.spaces) == {embedder for _, embedder in spaces}
    for number, embedder in spaces:
        held = held_vectors(memory, embedder)
        assert held == stored_vectors(session, number)
        space = memory.spaces[embedder]
        slots = np.flatnonzero(space.chunks != NONE)
        assert len(slots) == space.live == len(held)
        codes = signatures_of(space.buffers.vectors[slots]).astype("<i8").view(np.uint8)
        assert np.array_equal(space.buffers.codes[slots], codes)
    check_records(session, memory.chunks)
    session.close()


def check_records(session, records):
    """Compare what is shown of every chunk with the rows of the file."""
    expected = rows(
        session,
        f"SELECT {CHUNK_COLUMNS} FROM parts.chunks WHERE doc IN (SELECT doc FROM parts.revisions) ORDER BY chunk",
    )
    found = records.of([row["chunk"] for row in expected])
    assert found == expected
    assert all(list(one) == list(other) for one, other in zip(found, expected, strict=True))
    assert np.array_equal(np.flatnonzero(records.slots != NONE), [row["chunk"] for row in expected])


@pytest.mark.slow
def test_after_many_publishes_a_memory_holds_what_the_file_holds_and_read_only_what_changed(shelf):
    random = np.random.default_rng(1)
    memories, slots, blocks, changed = VectorMemories(), [], [], 0
    shelf.publish({f"{n}.md": ["one", "two"] for n in range(30)})
    shelf.publish({f"other-{n}.md": ["three"] for n in range(5)}, embedder="other@100", namespace="other")
    before = None
    for number in range(20):
        if number % 5 == 4:
            shelf.remove(f"{number}.md")
        else:
            paths = random.choice(40, 3, replace=False)
            shelf.publish({f"{n}.md": ["changed", f"again {number}"] for n in paths})
            changed += 2 * len(paths)
        index = opened(shelf)
        memory = memories.of(index)
        check(index, memory)
        if before is not None:
            check(*before)
            before[0].close()
        before = index, memory
        slots.append(memory.spaces[EMBEDDER].count)
        blocks.append(len(memory.chunks.blocks.blocks))
    assert slots[-1] <= 60 + changed
    # Six chunks of a publish, or none.
    assert all(after - first <= 1 for first, after in pairwise(blocks))
    assert memory.spaces["other@100"].count == 5
    before[0].close()


def test_the_same_chunks_have_other_numbers_in_the_other_file(shelf):
    """Two files are updated in turn: one by two publishes at once, the other by one after the other."""
    shelf.run_ids = "z-{}"
    memories, numbers = VectorMemories(), []
    shelf.publish({f"{n}.md": ["one"] for n in range(3)})
    for number in range(6):
        shelf.publish({f"{number}-{n}.md": [f"{number} {n}"] for n in range(4)})
        index = opened(shelf)
        memory = memories.of(index)
        check(index, memory)
        numbers.append(dict(zip(memory.keys.revisions.tolist(), memory.docs.tolist(), strict=True)))
        index.close()
    both = numbers[-1].keys() & numbers[-2].keys()
    assert any(numbers[-1][revision] != numbers[-2][revision] for revision in both)


def test_rows_that_moved_are_found_by_their_keys():
    earlier = ChunkKeys(np.array([5, 5, 7, 7, 9]), np.array([0, 1, 0, 1, 0], np.int32))
    now = ChunkKeys(np.array([5, 5, 9, 8, 7, 7]), np.array([0, 1, 0, 0, 0, 1], np.int32))
    assert now.carried(earlier).tolist() == [0, 1, 4, NONE, 2, 3]


def test_full_buffers_are_filled_anew(shelf, monkeypatch):
    monkeypatch.setattr(vector_memory_space, "LEAST_ROOM", 2)
    monkeypatch.setattr(vector_memory_records, "LEAST_ROOM", 2)
    memories, seen, stores = VectorMemories(), set(), set()
    shelf.publish({f"{n}.md": ["one"] for n in range(4)})
    for number in range(8):
        shelf.publish({f"{number % 4}.md": [f"changed {number}"]})
        index = opened(shelf)
        memory = memories.of(index)
        check(index, memory)
        seen.add(id(memory.spaces[EMBEDDER].buffers))
        stores.add(id(memory.chunks.blocks))
        assert len(memory.chunks.blocks.blocks) <= 3
        assert memory.spaces[EMBEDDER].count <= 2 * 4
        index.close()
    assert len(seen) > 1
    assert len(stores) > 1


@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3])
def test_records_are_read_as_they_were_added(count):
    blocks, expected = RecordBlocks(), {}
    for batch in range(3):
        records = [f"{batch} {number} " + "é" * (number % 7) * batch for number in range(count)]
        first = blocks.add(pa.array(["left out", *records], pa.string()).slice(1))
        expected |= {first + number: record.encode() for number, record in enumerate(records)}
    slots = sorted(expected, key=lambda slot: (slot % 5, slot))
    assert len(slots) == 3 * count
    assert list(blocks.read(slots)) == [expected[slot] for slot in slots]
    assert (blocks.used_bytes > 0) == (count > 0)


def test_records_hold_any_text(shelf):
    texts = ["", "\x00 \x7f \u2028 \U0001f600", '"quoted" \\ [1, null]', "line\nline\r\n\ttab", "x" * 100_000]
    shelf.publish({"a.md": texts})
    index = opened(shelf)
    memory = VectorMemories().of(index)
    check(index, memory)
    assert [row["text"] for row in memory.chunks.of(range(len(texts)))] == texts
    index.close()


def test_threads_share_one_memory(shelf):
    shelf.publish({f"{n}.md": ["one"] for n in range(20)})
    index, memories, found = opened(shelf), VectorMemories(), []
    threads = [threading.Thread(target=lambda: found.append(memories.of(index))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({id(each) for each in found}) == 1
    assert memories.bytes == found[0].bytes > 0
    index.close()


def test_the_memory_of_an_earlier_version_goes_with_its_index(shelf):
    memories, kept = VectorMemories(), []
    for number in range(3):
        shelf.publish({f"{number}.md": ["one"]})
        index = opened(shelf)
        kept.append(weakref.ref(memories.of(index).keys.places))
        index.close()
    del index
    assert [each() is not None for each in kept] == [False, False, True]


def test_an_empty_index_is_held(shelf):
    shelf.publish({"a.md": ["one"]})
    shelf.remove("a.md")
    index = opened(shelf)
    check(index, VectorMemories().of(index))
    index.close()


@pytest.mark.parametrize("dimension", [4, 64, 100, 256])
def test_the_nearest_codes_are_those_of_the_smallest_hamming_distance(dimension):
    random = np.random.default_rng(dimension)
    vectors = random.normal(size=(3000, dimension)).astype(np.float32)
    query = random.normal(size=dimension).astype(np.float32)
    codes = signatures_of(vectors).astype("<i8")
    signs, _ = query_signature(query)
    apart = np.bitwise_count((codes ^ np.array(signs, "<i8")).view(np.uint64)).sum(axis=1)
    for keep in (1, 50, 3000):
        # Of equally distant codes, the first.
        expected = np.lexsort((np.arange(len(apart)), apart))[:keep]
        assert nearest_codes(codes.view(np.uint8), query, keep).tolist() == expected.tolist()


@pytest.mark.parametrize(("count", "end"), [(0, 0), (50, 50), (50, 30), (50, 1)])
def test_postings_of_later_publishes_are_sorted_in(count, end):
    terms = np.random.default_rng(count + end).integers(0, 9, count)
    terms[:end].sort()
    assert by_term(terms).tolist() == np.argsort(terms, kind="stable").tolist()


def test_scores_of_words_are_those_of_sql(shelf):
    random = np.random.default_rng(3)
    words = ["oak", "elm", "ash", "fir", "yew"]
    for number in range(4):
        shelf.publish(
            {f"{n}-{number % 2}.md": [" ".join(random.choice(words, 8))] * 2 for n in range(20)},
            access=Access("individual", user_id="ada") if number == 3 else Access(),
        )
        opened(shelf).close()
    index = opened(shelf)
    postings, session = VectorMemories().of(index).postings, index.session()
    visible = Visible(session, Filters())
    assert not visible.whole
    copies = np.zeros(1000, np.int32)
    for doc, count in session.execute(f"SELECT doc, copies FROM {RELATION}").fetchall():
        copies[doc] = count
    terms = postings.terms_of(["oak", "fir", "unheard"])
    assert sorted(terms.values()) == ["fir", "oak"]
    listed = f"SELECT unnest([{', '.join(map(str, terms))}]) AS term"
    assert postings.holding(terms, copies) == dict(session.execute(frequencies(listed, RELATION)).fetchall())
    weights = {term: 0.5 + number for number, term in enumerate(sorted(terms))}
    values = ", ".join(f"({term}, {weight})" for term, weight in weights.items())
    sql = text_scores(f"(VALUES {values}) AS weights(term, weight)", "7.5", RELATION)
    expected = {(chunk, doc): score for chunk, doc, score in session.execute(sql).fetchall()}
    found = {(c, d): s for c, d, s in zip(*(a.tolist() for a in postings.scores(weights, 7.5, copies)), strict=True)}
    assert found.keys() == expected.keys()
    assert len(found) > 30
    assert all(abs(found[key] - expected[key]) < 1e-6 for key in found)
    index.close()


def test_without_the_extra_the_log_says_what_to_install(monkeypatch, caplog):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    assert vector_memories() is None
    assert [record.message for record in caplog.records] == [
        "searches compare vectors in SQL, which takes several times as long as in memory: install parquetry[serve]"
    ]
