"""The likely cost of a refresh, from sizes and earlier documents of the same kind, and its upper bound."""

import math

import pytest

from parquetry.embed.base import Worst
from parquetry.planning.diff import Change
from parquetry.planning.estimate import Ratios, estimate
from parquetry.settings.embedding import ChunkingSettings, EmbeddingSettings
from tests.records import item, row, skipped

CHARACTERS = ChunkingSettings(size=1000, overlap=200)
BYTES = Worst(1, 0)


def change(path, size=0, effort="extract", known=None, namespace="default"):
    listed = item(path, size=size)
    return Change("added", effort, "", path, namespace, "docs", listed, known)


def of(changes, current=(), chunking=CHARACTERS, price=1.0, worst=BYTES, **embedding):
    settings = EmbeddingSettings(**embedding)
    return estimate(changes, learned(current), chunking, settings, lambda _: worst, lambda _: price)


def learned(rows):
    ratios = Ratios()
    for each in rows:
        ratios.learn(each)
    return ratios


def test_nothing_to_do_costs_nothing_and_asks_no_price():
    def unknown(namespace):
        raise AssertionError(f"asked for a price of {namespace}")

    changes = [change("a.md", 100, "nothing"), change("b.md", 100, "row")]
    found = estimate(changes, Ratios(), CHARACTERS, EmbeddingSettings(), unknown, unknown)
    assert (found.chunks, found.tokens, found.cost_usd, found.cost_usd_batch) == (0, 0, 0.0, 0.0)
    assert (found.likely.chunks, found.likely.tokens, found.likely.cost_usd, found.unbounded) == (0, 0, 0.0, 0)


def test_likely_is_prose_with_the_overlap_paid_twice():
    likely = of([change("a.md", 8000)], price=2.0).likely
    assert (likely.chunks, likely.tokens) == (10, 2500)
    assert likely.cost_usd == pytest.approx(2500 * 2.0 / 1e6)


def test_every_document_has_a_chunk_of_its_own():
    found = of([change(f"{number}.md", 10) for number in range(300)])
    assert found.likely.chunks == 300
    assert found.chunks >= 300
    assert found.likely.tokens == 300 * 10 / 4


def test_at_most_is_a_token_for_every_byte_that_the_text_may_have():
    found = of([change("a.txt", 100)], worst=Worst(1.5, 7), document_prefix="doc: ")
    assert found.chunks == 1 + -(-4 * 300 // 800)
    repeated = 4 * 300 * 200 / 800
    assert found.tokens == math.ceil((300 + repeated + found.chunks * 5) * 1.5 + found.chunks * 7)
    assert found.cost_usd == pytest.approx(found.tokens / 1e6)
    assert found.cost_usd_batch == pytest.approx(found.cost_usd / 2, abs=1e-6)


@pytest.mark.parametrize(
    ("path", "bounded"), [("a.md", 1), ("a.py", 1), ("a.txt", 1), ("a.pdf", 0), ("a.csv", 0), ("a", 0)]
)
def test_formats_whose_size_bounds_nothing_are_said_to_have_no_bound(path, bounded):
    found = of([change(path, 8000)])
    assert found.unbounded == 1 - bounded
    assert found.chunks >= found.likely.chunks
    assert found.tokens >= found.likely.tokens


def test_template_that_repeats_headings_bounds_nothing():
    assert of([change("a.md", 8000)], template="{headings}: {text}").unbounded == 1
    assert of([change("a.md", 8000)], template="passage: {text}").unbounded == 0


def test_what_nothing_reads_costs_nothing():
    names = ["a.mp3", "b.zip", "c.tar.gz", "d.tgz", "e.mp3.xz", "f.tar.zst"]
    found = of([change(name, 8_000_000) for name in names])
    assert (found.chunks, found.likely.tokens, found.unbounded) == (0, 0, 0)


def test_compressed_file_is_expected_to_hold_more_than_its_size_and_has_no_bound():
    packed, plain = of([change("a.log.gz", 8000)]), of([change("a.log", 32_000)])
    assert packed.likely.tokens == plain.likely.tokens
    assert (packed.unbounded, plain.unbounded) == (1, 0)


def test_every_namespace_has_its_own_price_and_only_what_is_embedded_is_asked_for_one():
    prices = {"a": 2.0, "b": 0.0}
    changes = [
        change("1.md", 8000, namespace="a"),
        change("2.md", 80_000, namespace="b"),
        change("3.md", 9, "row", namespace="c"),
    ]
    found = estimate(changes, Ratios(), CHARACTERS, EmbeddingSettings(), lambda _: BYTES, prices.__getitem__).likely
    assert (found.chunks, found.tokens) == (110, 27_500)
    assert found.cost_usd == pytest.approx(2500 * 2.0 / 1e6)


def test_price_that_is_not_known_is_no_number():
    found = of([change("a.md", 8000)], price=None)
    assert (found.cost_usd, found.cost_usd_batch, found.likely.cost_usd) == (None, None, None)


def test_stored_text_is_counted_by_its_characters_and_bounded_whatever_the_format():
    found = of([change("a.pdf", 10**9, "rechunk", known=row("a.pdf", characters=1600))])
    assert (found.likely.chunks, found.unbounded) == (2, 0)
    assert found.tokens >= 1600


def test_each_page_of_a_stored_text_may_be_a_chunk_of_its_own():
    found = of([change("a.pdf", 10**9, "rechunk", known=row("a.pdf", characters=4000, pages=300))])
    assert found.chunks >= 300


def test_formats_that_are_mostly_not_text_count_less():
    assert of([change("a.pdf", 80_000)]).likely.chunks < of([change("a.md", 80_000)]).likely.chunks
    assert of([change("a.PNG", 80_000)]).likely.chunks == 0


def test_ratio_is_learned_from_documents_of_the_same_extension():
    known = [
        row("x.pdf", size=1000, characters=500, tokens=100),
        row("y.PDF", size=1000, characters=1500, tokens=300),
        skipped("z.pdf", size=90_000),
    ]
    likely = of([change("a.pdf", 8000)], known).likely
    assert (likely.chunks, likely.tokens) == (10, 8000 * 400 / 2000)
    assert of([change("a.md", 8000)], known).likely.chunks == 10


def test_empty_documents_teach_nothing():
    assert of([change("a.md", 8000)], [row("x.md", "", size=0, characters=0)]).likely.chunks == 10


def test_chunks_in_tokens_are_larger():
    tokens = ChunkingSettings(size=1000, overlap=200, unit="tokens")
    assert of([change("a.md", 32_000)], chunking=tokens).likely.chunks == 10
