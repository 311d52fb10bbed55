"""The laws of chunks hold for any text."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from parquetry.chunking.chunker import Chunker
from parquetry.chunking.splitter import Cutter, Ruler, load_tokenizer
from parquetry.extract.builder import TextBuilder
from parquetry.model import Extraction, Heading, Part, TextFormat
from parquetry.planning.estimate import CHUNKS_PER_STEP
from parquetry.settings.embedding import ChunkingSettings
from tests.chunking.chunks import WORDS, build, holds_the_laws
from tests.processor_time import seconds_of


def character_tokenizer() -> str:
    """Count one token for each character or byte: token boundaries differ from word boundaries."""
    tokenizer = Tokenizer(models.BPE({"<unk>": 0}, [], unk_token="<unk>", fuse_unk=False))
    return tokenizer.to_str()


prose = st.lists(
    st.sampled_from(
        ["Valves open.", "Close it!", "a b c d", "über", "日本語の文章。", "x" * 40, "1.5 bar,", "e.g. this"]
    ),
    min_size=1,
    max_size=40,
).map(" ".join)
table = st.integers(1, 12).map(
    lambda count: "\n".join(["| name | value |", "| --- | --- |", *[f"| row {n} | {n * 7} |" for n in range(count)]])
)
fence = st.integers(0, 20).map(lambda count: "```python\n" + "def f():\n    return 1\n\n" * count + "```")
listing = st.integers(1, 20).map(lambda count: "\n".join(f"- item {n}" for n in range(count)))
wild = st.text(alphabet=st.sampled_from("ab |`~#-\n\t.é漢\u00a0"), max_size=120)
block = st.one_of(prose, table, fence, listing, wild)


@st.composite
def extractions(draw: st.DrawFn) -> Extraction:
    builder = TextBuilder()
    for number in range(1, draw(st.integers(1, 3)) + 1):
        if draw(st.booleans()):
            kind = draw(st.sampled_from(["page", "sheet", "slide"]))
            builder.part(kind, number, None, draw(st.sampled_from(["markdown", "text", "table", "code"])))
        for _ in range(draw(st.integers(0, 6))):
            if draw(st.booleans()):
                builder.heading(
                    draw(st.integers(1, 4)), draw(st.sampled_from(["Setup", "Use", "A longer heading " * 3]))
                )
            builder.text(draw(block))
    return builder.build(title=None, metadata={}, media_type="text/markdown", extractor="test/1")


@settings(max_examples=150, deadline=None)
@given(made=extractions(), size=st.integers(16, 300), share=st.floats(0, 0.9), across=st.booleans())
def test_any_text_in_characters_keeps_the_laws_of_chunks(
    made: Extraction, size: int, share: float, across: bool
) -> None:
    chunking = ChunkingSettings(size=size, overlap=int(size * share), across_pages=across)
    chunker = Chunker(chunking, None)
    chunks = chunker.split(made.text, made.parts, made.headings)
    holds_the_laws(made, chunks, chunking, WORDS)
    assert chunks == Chunker(chunking, None).split(made.text, made.parts, made.headings)


@pytest.mark.parametrize("tokenizer", [WORDS, character_tokenizer()], ids=["words", "characters"])
@settings(max_examples=40, deadline=None)
@given(made=extractions(), size=st.integers(16, 80), share=st.floats(0, 0.5), across=st.booleans())
def test_any_text_in_tokens_keeps_the_laws_of_chunks(
    tokenizer: str, made: Extraction, size: int, share: float, across: bool
) -> None:
    chunking = ChunkingSettings(size=size, overlap=int(size * share), unit="tokens", across_pages=across)
    chunks = Chunker(chunking, tokenizer).split(made.text, made.parts, made.headings)
    holds_the_laws(made, chunks, chunking, tokenizer)


ADVERSARIAL = st.lists(
    st.tuples(
        st.sampled_from([
            "x", "x ", "\n", "\n\n", "# a\n", "## b\n\n", "| a | b |\n", "| - | - |\n", "a|b\n-|-\n", "```\n", "~~~\n",
            "é", "     ", "x" * 17, "x" * 40, "word. ", "A. B. ", "- a\n", "def f():\n    pass\n", "x\n\n", "日本",
        ]),
        st.integers(1, 30),
    ),
    min_size=1, max_size=25,
).map(lambda pieces: "".join(piece * count for piece, count in pieces).strip() or "x")  # fmt: skip
PLACES = st.lists(st.floats(0, 0.999), max_size=60)


@settings(max_examples=150, deadline=None)
@given(
    text=ADVERSARIAL,
    headed=PLACES,
    parted=PLACES,
    size=st.integers(16, 60),
    share=st.floats(0, 0.99),
    kind=st.sampled_from(["text", "markdown", "table", "code"]),
    tokenizer=st.sampled_from([None, WORDS, character_tokenizer()]),
)
def test_no_text_gives_more_chunks_than_its_parts_and_four_for_each_step(
    text: str,
    headed: list[float],
    parted: list[float],
    size: int,
    share: float,
    kind: TextFormat,
    tokenizer: str | None,
) -> None:
    unit = "characters" if tokenizer is None else "tokens"
    chunking = ChunkingSettings(size=size, overlap=int(size * share), unit=unit)
    places = sorted({0, len(text), *(int(place * len(text)) for place in parted)})
    parts = [
        Part(start, end, "page", number, None, kind, "python" if kind == "code" else None)
        for number, (start, end) in enumerate(pairwise(places), start=1)
    ]
    named = sorted({int(place * len(text)) for place in headed})
    headings = [Heading(place, 1 + place % 6, "h") for place in named if not text[place].isspace()]
    chunks = Chunker(chunking, tokenizer).split(text, parts, headings)
    units = Ruler(text, load_tokenizer(tokenizer) if tokenizer else None).size(0, len(text))
    assert len(chunks) <= len(parts) + math.ceil(CHUNKS_PER_STEP * units / (chunking.size - chunking.overlap))


def test_spaces_without_end_between_words_are_no_chunk() -> None:
    text = "a" + " " * 500 + "b"
    chunks = Chunker(ChunkingSettings(size=16, overlap=0, unit="tokens"), character_tokenizer()).split(text, (), ())
    assert [text[one.start : one.end] for one in chunks] == ["a", "b"]


def test_a_piece_that_is_cut_again_keeps_the_order() -> None:
    made = build("Valves open.", "```python\n" + "def f():\n    return 1\n\n" * 4 + "```", "Valves open.")
    chunking = ChunkingSettings(size=16, overlap=8, unit="tokens")
    chunks = Chunker(chunking, WORDS).split(made.text, made.parts, made.headings)
    holds_the_laws(made, chunks, chunking, WORDS)


@given(
    cells=st.lists(st.sampled_from(["", "a", "1,234.5", "Valves open.", "日本語の文章。", "x" * 1500]), min_size=1),
    size=st.sampled_from([300, 1000, 2000]),
)
@settings(max_examples=30)
def test_rows_too_long_for_a_chunk_are_cut_as_any_text(cells: list[str], size: int) -> None:
    row = "| " + " | ".join(cells * (30_000 // len("".join(cells) + "   " * len(cells)))) + " |"
    cutter = Cutter(row, Ruler(row, None), size, 0)
    assert cutter.rows(0, len(row)) == cutter.text(0, len(row), overlap=0)


def test_time_to_cut_rows_grows_with_their_length() -> None:
    def seconds(columns: int, rows: int) -> float:
        table = "\n".join(["|" + "  |" * columns] * rows)
        return seconds_of(lambda: Cutter(table, Ruler(table, None), 1000, 0).rows(0, len(table)), 20)

    seconds(400, 1)
    least = min(seconds(1_000, 400) for _ in range(2))
    # A second time only if other load on the machine may have been the reason.
    assert any(seconds(10_000, 40) < 2.5 * least for _ in range(2))
