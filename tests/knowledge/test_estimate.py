"""A refresh's cost is estimated from sizes, and from what documents of the same kind gave before."""

import pytest

from knowledge.changes import Change
from knowledge.estimate import Ratios, estimate
from knowledge.settings import ChunkingSettings
from tests.records import item, row, skipped

CHARACTERS = ChunkingSettings(size=1000, overlap=200)


def change(path, size=0, effort="extract", known=None, namespace="default"):
    listed = item(path, size=size)
    return Change("added", effort, "", path, namespace, "docs", listed, known)


def of(changes, current=(), chunking=CHARACTERS, price=1.0):
    return estimate(changes, learned(current), chunking, lambda namespace: price)


def learned(rows):
    ratios = Ratios()
    for each in rows:
        ratios.learn(each)
    return ratios


def test_nothing_to_do_costs_nothing_and_asks_no_price():
    def unknown(namespace):
        raise AssertionError(f"asked for a price of {namespace}")

    found = estimate([change("a.md", 100, "nothing"), change("b.md", 100, "row")], Ratios(), CHARACTERS, unknown)
    assert (found.chunks, found.tokens, found.cost_usd, found.cost_usd_batch) == (0, 0, 0.0, 0.0)


def test_text_is_counted_by_its_bytes_with_the_overlap_paid_twice():
    found = of([change("a.md", 8000)], price=2.0)
    assert found.chunks == 10
    assert found.tokens == 8000 * 1000 / 800 / 4
    assert found.cost_usd == pytest.approx(2500 * 2.0 / 1e6)
    assert found.cost_usd_batch == pytest.approx(found.cost_usd / 2)


def test_every_namespace_has_its_own_price_and_only_what_is_embedded_is_asked_for_one():
    prices = {"a": 2.0, "b": 0.0}
    changes = [
        change("1.md", 8000, namespace="a"),
        change("2.md", 80_000, namespace="b"),
        change("3.md", 9, "row", namespace="c"),
    ]
    found = estimate(changes, Ratios(), CHARACTERS, prices.__getitem__)
    assert (found.chunks, found.tokens) == (110, 27_500)
    assert found.cost_usd == pytest.approx(2500 * 2.0 / 1e6)


def test_last_chunk_counts_whole():
    assert of([change("a.md", 801)]).chunks == 2


def test_stored_text_is_counted_by_its_characters():
    assert of([change("a.pdf", 10**9, "rechunk", known=row("a.pdf", characters=1600))]).chunks == 2


def test_formats_that_are_mostly_not_text_count_less():
    assert of([change("a.pdf", 80_000)]).chunks < of([change("a.md", 80_000)]).chunks
    assert of([change("a.PNG", 80_000)]).chunks == 0


def test_ratio_is_learned_from_documents_of_the_same_extension():
    known = [
        row("x.pdf", size=1000, characters=500),
        row("y.PDF", size=1000, characters=1500),
        skipped("z.pdf", size=90_000),
    ]
    assert of([change("a.pdf", 8000)], known).chunks == 10
    assert of([change("a.md", 8000)], known).chunks == 10


def test_empty_documents_teach_nothing():
    assert of([change("a.md", 8000)], [row("x.md", "", size=0, characters=0)]).chunks == 10


def test_chunks_in_tokens_are_larger():
    tokens = ChunkingSettings(size=1000, overlap=200, unit="tokens")
    assert of([change("a.md", 32_000)], chunking=tokens).chunks == 10
