"""Chunks made for tests, and the laws that all chunks keep."""

from __future__ import annotations

from itertools import pairwise

from tokenizers import Tokenizer, models, pre_tokenizers

from parquetry.chunking.chunker import Chunker
from parquetry.extract.builder import TextBuilder
from parquetry.model import Chunk, Extraction
from parquetry.settings.embedding import ChunkingSettings


def word_tokenizer() -> str:
    """Count one token for each word and each punctuation mark."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer.to_str()


WORDS = word_tokenizer()
SENTENCES = "".join(f"This is sentence number {n} of the text. " for n in range(100)).strip()


def chunk(made: Extraction, **values: object) -> tuple[Chunk, ...]:
    return Chunker(ChunkingSettings(**values), WORDS).split(made.text, made.parts, made.headings)


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
