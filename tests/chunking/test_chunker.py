"""Chunks: the laws for any text, and the properties of good chunks."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from parquetry.chunking.chunker import Chunker, fingerprint
from parquetry.chunking.splitter import Cutter, Ruler, load_tokenizer
from parquetry.errors import SettingsError
from parquetry.extract.builder import TextBuilder
from parquetry.model import Chunk, Extraction, Heading, Part, TextFormat
from parquetry.planning.estimate import CHUNKS_PER_STEP
from parquetry.settings.embedding import ChunkingSettings
from tests.processor_time import seconds_of


def word_tokenizer() -> str:
    """Count one token for each word and each punctuation mark."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer.to_str()


def character_tokenizer() -> str:
    """Count one token for each character or byte: token boundaries differ from word boundaries."""
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


# --- properties of good chunks


def texts(made: Extraction, chunks: tuple[Chunk, ...]) -> list[str]:
    return [made.text[one.start : one.end] for one in chunks]


def build(*blocks: str | tuple[int, str] | list[list[str]]) -> Extraction:
    builder = TextBuilder()
    for one in blocks:
        if isinstance(one, str):
            builder.text(one)
        elif isinstance(one, tuple):
            builder.heading(*one)
        else:
            builder.table(one)
    return builder.build(title=None, metadata={}, media_type="", extractor="")


SENTENCES = "".join(f"This is sentence number {n} of the text. " for n in range(100)).strip()


def test_a_heading_stays_with_the_first_sentences_of_a_text_that_does_not_fit() -> None:
    made = build((1, "Pumps"), (2, "Setup"), SENTENCES)
    first = texts(made, chunk(made, size=300, overlap=50))[0]
    assert first.startswith("# Pumps\n\n## Setup\n\nThis is sentence number 0 of the text.")
    assert len(first) > 200


def test_a_heading_does_not_end_a_chunk() -> None:
    made = build((1, "A"), "x" * 20 + ". " + SENTENCES[:150], (2, "B"), SENTENCES[:250], (2, "C"), SENTENCES[:280])
    for piece in texts(made, chunk(made, size=300, overlap=0)):
        assert not piece.rsplit("\n", 1)[-1].startswith("#")


def test_a_heading_and_a_caption_take_sentences_of_the_long_paragraph_along() -> None:
    made = build((1, "Pumps"), "A caption.", SENTENCES[:280])
    assert len(texts(made, chunk(made, size=300, overlap=0))[0]) > 200


def test_a_word_before_a_long_section_is_no_chunk_of_its_own() -> None:
    made = build("A word before.", (1, "Pumps"), SENTENCES)
    assert texts(made, chunk(made, size=300, overlap=0))[0].startswith("A word before.\n\n# Pumps\n\nThis is")


def test_a_heading_goes_with_the_table_that_follows() -> None:
    made = build("A word before.", (1, "Pumps"), "| a |\n| --- |\n" + "| value |\n" * 24)
    pieces = texts(made, chunk(made, size=270, overlap=0))
    assert [piece.split("\n")[0] for piece in pieces] == ["A word before.", "# Pumps"]


def test_sections_that_fit_together_are_one_chunk_and_others_start_their_own() -> None:
    made = build((1, "A"), "short text", (2, "B"), "short text", (2, "C"), SENTENCES[:280], (1, "D"), SENTENCES[:200])
    assert [piece.split("\n")[0] for piece in texts(made, chunk(made, size=300, overlap=0))] == ["# A", "## C", "# D"]


def test_each_chunk_knows_the_headings_that_it_stands_under() -> None:
    made = build(
        (1, "A"), (2, "B"), SENTENCES[:280], (3, "C"), SENTENCES[:280], (2, "D"), SENTENCES[:280], (1, "E"), "x"
    )
    paths = [one.headings for one in chunk(made, size=300, overlap=0)]
    assert paths == [("A",), ("A", "B", "C"), ("A", "D"), ("E",)]


@pytest.mark.parametrize(
    ("before", "path"),
    [("Alder Freight", ("A", "C")), ("A longer rest of the section before, of several words.", ("A", "B"))],
    ids=["line", "rest"],
)
def test_a_line_before_a_heading_is_of_the_section_that_follows(before: str, path: tuple[str, ...]) -> None:
    """Pages of statements begin with the name of the company, and that of the statement follows."""
    made = build((1, "A"), (2, "B"), SENTENCES[:280], before, (2, "C"), SENTENCES[:200])
    last = chunk(made, size=300, overlap=0)[-1]
    assert made.text[last.start :].startswith(before)
    assert last.headings == path


def test_a_short_rest_of_a_text_goes_with_the_section_that_follows() -> None:
    made = build("A word before.", (1, "A"), "Text of the section.")
    assert len(chunk(made, size=300, overlap=0)) == 1


def test_tables_are_cut_between_rows_and_start_with_their_header() -> None:
    rows = [["id", "name"], *[[str(n), f"item number {n}"] for n in range(200)]]
    made = build((1, "List"), "Before the table.", rows, "After it.")
    pieces = texts(made, chunk(made, size=1200, overlap=200))
    assert all("| id | name |\n| --- | --- |\n| " in piece for piece in pieces if "item number" in piece)
    assert all(piece.startswith(("| id |", "# List")) for piece in pieces)
    assert sum(piece.count("item number") for piece in pieces) == 200


def test_a_table_longer_than_a_chunk_is_cut_between_rows() -> None:
    made = build("| id | name |\n| --- | --- |\n" + "\n".join(f"| {n} | item number {n} |" for n in range(100)))
    pieces = texts(made, chunk(made, size=200, overlap=50))
    assert len(pieces) > 5
    assert all(line.startswith("| ") and line.endswith(" |") for piece in pieces for line in piece.split("\n"))
    assert pieces[0].startswith("| id | name |\n| --- | --- |\n| 0 |")
    assert sum(piece.count("item number") for piece in pieces) == 100


def test_a_table_header_is_not_left_without_rows() -> None:
    row = "| " + "word " * 12 + "|"
    made = build(SENTENCES[:215], "| a |\n| --- |\n" + f"{row}\n" * 8)
    pieces = texts(made, chunk(made, size=300, overlap=0))
    assert len(pieces) > 2
    assert not [piece for piece in pieces if piece.endswith("| --- |")]


def test_a_table_without_outer_pipes_is_cut_between_rows_too() -> None:
    made = build("id | name\n--- | ---\n" + "\n".join(f"{n} | item. Number {n}" for n in range(60)))
    pieces = texts(made, chunk(made, size=150, overlap=30))
    assert all(" | item. Number " in line for piece in pieces[1:] for line in piece.split("\n"))
    assert sum(piece.count("item.") for piece in pieces) == 60


def test_a_row_longer_than_a_chunk_is_cut_by_words() -> None:
    made = build("| a | b |\n| --- | --- |\n| " + "word " * 100 + "| x |\n| 1 | 2 |")
    assert all(len(piece) <= 100 for piece in texts(made, chunk(made, size=100, overlap=0)))


def test_overlap_begins_with_a_sentence_and_stays_within_the_section() -> None:
    made = build((1, "A"), SENTENCES, (1, "B"), SENTENCES)
    chunks = chunk(made, size=300, overlap=100)
    for before, after in pairwise(chunks):
        piece = made.text[after.start : after.end]
        if piece.startswith("#"):
            assert after.start >= before.end
        else:
            assert piece.startswith("This is sentence")
            assert 0 < before.end - after.start <= 100


def test_a_fenced_block_that_fits_is_not_cut() -> None:
    fenced = "```python\na = 1\n\n# not a heading\n\nb = 2\n```"
    made = build(SENTENCES[:200], fenced, SENTENCES[:200])
    assert sum(fenced in piece for piece in texts(made, chunk(made, size=240, overlap=20))) == 1


def pages(*contents: str) -> Extraction:
    builder = TextBuilder()
    for number, content in enumerate(contents, start=1):
        builder.part("page", number, None, "text")
        builder.text(content)
    return builder.build(title=None, metadata={}, media_type="", extractor="")


def test_chunks_end_with_their_page_unless_told_otherwise() -> None:
    made = pages("First page.", "Second page.", "Third page.")
    assert [(one.kind, one.page) for one in chunk(made)] == [("page", 1), ("page", 2), ("page", 3)]
    joined = chunk(made, across_pages=True)
    assert [(one.start, one.end, one.page) for one in joined] == [(0, len(made.text), 1)]


def test_text_in_a_document_without_pages_has_no_page_number() -> None:
    assert [(one.kind, one.page) for one in chunk(build("Words."))] == [("document", None)]


def test_text_outside_of_all_parts_is_chunked_too() -> None:
    text = "before inside after"
    made = Extraction(text, (Part(7, 13, "page", 1, None, "text"),), (), None, {}, "text/plain", "x/1")
    assert texts(made, chunk(made)) == ["before", "inside", "after"]


def test_a_long_text_is_cut_like_its_beginning() -> None:
    text = (SENTENCES + "\n\n") * 60
    made = Extraction(text, (Part(0, len(text), "document", 1, None, "text"),), (), None, {}, "text/plain", "x/1")
    chunks = chunk(made, size=500, overlap=100)
    assert len(text) > 200_000
    holds_the_laws(made, chunks, ChunkingSettings(size=500, overlap=100), WORDS)
    assert min(one.end - one.start for one in chunks[:-1]) > 200
    assert all(made.text[one.start :].startswith("This is sentence") for one in chunks)


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_no_text_gives_no_chunks(text: str) -> None:
    assert Chunker(ChunkingSettings(), None).split(text, (), ()) == ()


def test_a_chunker_can_be_pickled_after_use() -> None:
    made = build(SENTENCES)
    chunker = Chunker(ChunkingSettings(unit="tokens", size=20, overlap=4), WORDS)
    expected = chunker.split(made.text, made.parts, made.headings)
    assert pickle.loads(pickle.dumps(chunker)).split(made.text, made.parts, made.headings) == expected
    assert len(expected) > 10


def test_tokens_without_a_tokenizer_are_a_mistake_in_the_settings() -> None:
    with pytest.raises(SettingsError):
        Chunker(ChunkingSettings(unit="tokens"), None)


def test_the_fingerprint_changes_with_what_shapes_chunks_and_only_with_that() -> None:
    plain = fingerprint(ChunkingSettings(), None)
    assert fingerprint(ChunkingSettings(preset="characters-1200"), "any") == plain
    others = [
        ChunkingSettings(size=1000), ChunkingSettings(overlap=100), ChunkingSettings(across_pages=True),
        ChunkingSettings(unit="tokens"),
    ]  # fmt: skip
    assert len({plain, *(fingerprint(one, "t1") for one in others), fingerprint(others[3], "t2")}) == 6


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
    assert seconds(10_000, 40) < 2.5 * min(seconds(1_000, 400) for _ in range(2))
