"""The properties of good chunks."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest

from parquetry.chunking.chunker import Chunker
from parquetry.chunking.fingerprint import fingerprint
from parquetry.errors import SettingsError
from parquetry.extract.builder import TextBuilder
from parquetry.model import Extraction, Part
from parquetry.settings.embedding import ChunkingSettings
from tests.chunking.chunks import SENTENCES, WORDS, build, chunk, holds_the_laws, texts


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
