"""Chunks: the laws that hold for any text, and what good chunks look like."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from knowledge.chunk import Chunker, fingerprint
from knowledge.errors import SettingsError
from knowledge.extract.builder import TextBuilder
from knowledge.model import Chunk, Extraction, Heading, Part
from knowledge.settings import ChunkingSettings


def word_tokenizer() -> str:
    """One token for each word and each sign."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer.to_str()


def character_tokenizer() -> str:
    """One token for each character or byte of it: tokens do not fall together with words."""
    tokenizer = Tokenizer(models.BPE({"<unk>": 0}, [], unk_token="<unk>", fuse_unk=False))
    return tokenizer.to_str()


WORDS = word_tokenizer()

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


def chunk(made: Extraction, **values: object) -> tuple[Chunk, ...]:
    return Chunker(ChunkingSettings(**values), WORDS).split(made.text, made.parts, made.headings)


def holds_the_laws(made: Extraction, chunks: tuple[Chunk, ...], chunking: ChunkingSettings, tokenizer: str) -> None:
    counter = Tokenizer.from_str(tokenizer)

    def units(start: int, end: int) -> int:
        piece = made.text[start:end]
        return len(piece) if chunking.unit == "characters" else len(counter.encode(piece, add_special_tokens=False).ids)

    covered = bytearray(len(made.text))
    for number, one in enumerate(chunks):
        piece = made.text[one.start : one.end]
        assert one.index == number
        assert piece
        assert piece == piece.strip()
        assert units(one.start, one.end) <= chunking.size
        covered[one.start : one.end] = b"\x01" * (one.end - one.start)
        parts = [part for part in made.parts if part.start < one.end and part.end > one.start]
        assert len(parts) == 1 or (chunking.across_pages and {part.kind for part in parts} == {"page"})
        assert one.page == (None if parts[0].kind == "document" else parts[0].number)
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
        if after.start < before.end:
            assert units(after.start, before.end) <= chunking.overlap
    lost = [place for place, seen in enumerate(covered) if not seen and not made.text[place].isspace()]
    assert not lost


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
