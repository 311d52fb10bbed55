"""Code is cut at definitions and statements, as far as parsing is affordable."""

import pytest

from parquetry.chunking import splitter
from parquetry.chunking.chunker import Chunker
from parquetry.extract.source_code import SourceCodeExtractor
from parquetry.language.grammars import MAX_CHARACTERS
from parquetry.model import Part, RawDocument
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.sections import ExtractionSettings


def pieces_of(text: str, language: str, **settings: int) -> list[str]:
    part = Part(0, len(text), "document", 1, None, "code", language)
    chunks = Chunker(ChunkingSettings(**settings), None).split(text, (part,), ())
    return [text[each.start : each.end] for each in chunks]


def test_code_is_cut_at_definitions():
    source = "import os\n\n" + "\n\n".join(
        f"@cache\ndef f{n}(x):\n    # About {n}.\n    y = x + {n}\n    return y" for n in range(30)
    )
    made = SourceCodeExtractor().extract(RawDocument(source.encode(), "a.py"), "text/x-python", ExtractionSettings())
    chunks = Chunker(ChunkingSettings(size=200, overlap=50), None).split(made.text, made.parts, made.headings)
    pieces = [made.text[each.start : each.end] for each in chunks]
    assert len(pieces) > 8
    assert all(
        piece.startswith(("import", "@cache")) and piece.split("\n")[-1].startswith("    return") for piece in pieces
    )


def test_code_without_definitions_is_cut_by_its_grammar():
    source = "".join(f"value_{n} = compute(\n    {n},\n)\n" for n in range(40))
    pieces = pieces_of(source, "python", size=150, overlap=0)
    assert all(piece.startswith("value_") and piece.endswith(")") for piece in pieces)


def test_code_with_more_white_space_than_a_chunk_holds_is_cut_there():
    """A million line breaks used to take minutes in native code."""
    text = "x" + "\n" * 1_000_000 + "function f() {\n  return 1\n}\n"
    assert pieces_of(text, "javascript") == ["x", "function f() {\n  return 1\n}"]


@pytest.mark.slow
def test_code_of_which_the_beginning_is_nested_deeper_than_the_whole_is_cut_as_text():
    """Cutting at statements, which are detected from the first part alone, would take hours."""
    text = "/*" * 84_000 + "*/" * 66_000
    assert len(pieces_of(text, "go")) == pytest.approx(len(text) / 1200, rel=0.3)


def test_code_that_is_longer_than_anybody_writes_is_not_parsed(monkeypatch):
    def parsed(*_):
        raise AssertionError("parsed")

    monkeypatch.setattr(splitter, "parsed", parsed)
    statement = "value = compute(\n    1,\n)\n\n"
    text = statement * (MAX_CHARACTERS // len(statement) + 1)
    assert {piece.count("value") for piece in pieces_of(text, "python")[:-1]} == {44}
    with pytest.raises(AssertionError, match="parsed"):
        pieces_of(text[:MAX_CHARACTERS], "python")


def test_lines_that_no_program_has_are_parsed_in_short_windows(monkeypatch):
    """The splitter takes quadratic time on a word of a quarter of a megabyte."""
    lengths = []
    parsed = splitter.parsed

    def told(source, language):
        lengths.append(len(source))
        return parsed(source, language)

    monkeypatch.setattr(splitter, "parsed", told)
    lines = "value = compute(1, 2)\n" * 5_000
    assert "".join(pieces_of(f"a{'b' * 100_000}\n{lines}", "python", overlap=0)).startswith("abbb")
    assert max(lengths) == splitter.WINDOW_CHARACTERS
    lengths.clear()
    assert pieces_of(lines, "python")
    assert lengths == [len(lines)]
