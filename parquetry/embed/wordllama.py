"""The bundled model: the average of token vectors from the wordllama wheel. No download and no service is needed.

A text's vector is the mean of the vectors of its tokens, so finding the tokens takes all the time. The tokenizer's
merges never cross from a word into the space before the next one; therefore a text can be cut there, each distinct
piece is tokenised once, and its token ids are cached. Texts are lower-cased, because the model's vectors of capitalised
words are poor.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import mmap
import re
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from parquetry.embed.base import Embedded, Vectors, Worst, model_id
from parquetry.embed.checks import blank, unit_rows
from parquetry.errors import SettingsError
from parquetry.settings.embedding import EmbeddingSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODEL = "l2-supercat/1"
"""the digit is raised whenever the same text may get a different vector"""
FULL_DIMENSION = 256
DIMENSIONS = (64, 128, 256)
"""lengths to which the model was trained to be truncated (Matryoshka); 512 and 1,024 are not in the wheel"""

_WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
_TOKENIZER = Path("tokenizers") / "l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"

WORST = Worst(1.5, 1)
"""one token per byte of the text in lower case, which may be half as long again; and a space before it"""

_SPACE = "\u2581"
"""the tokenizer's mark of a space"""
_WORD_BOUNDARY = re.compile(r"(?<=[^ ]) ")
_BLOCK_TEXTS = 64
_BLOCK_TOKENS = 512
"""rows gathered at a time: half a megabyte, which fits the processor's cache"""
_KEPT_BYTES = 16 * 1024 * 1024
_PIECE_OVERHEAD = 200
"""approximate bytes of a dictionary entry with a short key and value"""


class WordLlamaEmbedder:
    """wordllama's `l2_supercat` with 256 dimensions or its first 128 or 64.

    Args:
        settings: `dimension` and the prefixes are used.

    Raises:
        SettingsError: the model was not trained for this dimension, or its files are not where the wheel installs them.

    Source: https://github.com/dleemiller/WordLlama
    """

    price_per_million_tokens = 0.0

    def __init__(self, settings: EmbeddingSettings) -> None:
        self.dimension = chosen_dimension(settings)
        self.id = embedder_id(settings)
        self._document_prefix = settings.document_prefix
        self._query_prefix = settings.query_prefix
        folder = _package_folder()
        self._file, stored = _token_vectors(folder / _WEIGHTS)
        self._stored = stored[:, : self.dimension]
        self._tokens = _Pieces(folder / _TOKENIZER)
        self._lock = threading.Lock()
        self._widened: npt.NDArray[np.float32] | None = None

    @functools.cached_property
    def tokenizer_json(self) -> str:
        """The tokenizer including lower-casing, and cutting at words, which changes its speed but no token."""
        described = json.loads(self._tokens.file.read_text("utf-8"))
        described["normalizer"]["normalizers"].insert(0, {"type": "Lowercase"})
        described["pre_tokenizer"] = {
            "type": "Split",
            "pattern": {"Regex": f"{_SPACE}+"},
            "behavior": "MergedWithNext",
            "invert": False,
        }
        return json.dumps(described, ensure_ascii=False)

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts of documents; a blank text is refused."""
        refused = blank(texts)
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        buffer = np.empty((_BLOCK_TOKENS, self.dimension), np.float32)
        # A few texts need a few rows of the table.
        table = self._table() if len(texts) > _BLOCK_TEXTS else self._widened
        counts = [0] * len(texts)
        for first in range(0, len(texts), _BLOCK_TEXTS):
            block = [self._document_prefix + text for text in texts[first : first + _BLOCK_TEXTS]]
            for row, found in enumerate(self._tokens.of(block), first):
                if row not in refused:
                    if table is None:
                        _add_up(*self._rows_of(found), buffer, vectors[row])
                    else:
                        _add_up(table, found, buffer, vectors[row])
                    counts[row] = int(found.size)
        for row, reason in unit_rows(vectors).items():
            refused.setdefault(row, reason)
        return Embedded(vectors, sum(counts), refused, counts)

    def embed_query(self, text: str) -> Vectors:
        """Embed one query exactly like a document: float32[dimension]; read without loading the whole table."""
        vector = np.zeros((1, self.dimension), np.float32)
        if text.strip():
            (found,) = self._tokens.of([self._query_prefix + text])
            _add_up(*self._rows_of(found), np.empty((_BLOCK_TOKENS, self.dimension), np.float32), vector[0])
            unit_rows(vector)
        query: Vectors = vector[0]
        return query

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries: float32[n, dimension], each row as `embed_query` returns it."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self.embed_query(text)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count tokens exactly."""
        return [
            int(found.size)
            for first in range(0, len(texts), _BLOCK_TEXTS)
            for found in self._tokens.of(texts[first : first + _BLOCK_TEXTS])
        ]

    def _rows_of(self, tokens: npt.NDArray[np.uint16]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.intp]]:
        """Return the rows of the table that some tokens need, and the place of each token's row among them."""
        rows, places = np.unique(tokens, return_inverse=True)
        return self._stored[rows].astype(np.float32), places

    def _table(self) -> npt.NDArray[np.float32]:
        # Adding half-precision rows is five times slower, so the first batch widens all of them once.
        with self._lock:
            if self._widened is None:
                self._widened = np.ascontiguousarray(self._stored, np.float32)
                if sys.platform == "linux":
                    # The pages of the file that this process has read; the next use reads them again.
                    self._file.madvise(mmap.MADV_DONTNEED)
            return self._widened

    def give_memory_back(self) -> None:
        """Free table (32 MB), tokens of pieces and tokenizer (18 MB); the next batch makes them again."""
        with self._lock:
            self._widened = None
        self._tokens.close()


def chosen_dimension(settings: EmbeddingSettings) -> int:
    """Return the dimension in the settings.

    Raises:
        SettingsError: the model was not trained for it.
    """
    dimension = settings.dimension or FULL_DIMENSION
    if dimension not in DIMENSIONS:
        choices = ", ".join(map(str, DIMENSIONS))
        raise SettingsError(f"embedding.dimension is {dimension}, but wordllama gives vectors of {choices}")
    return dimension


def embedder_id(settings: EmbeddingSettings) -> str:
    """Return the id of `WordLlamaEmbedder(settings)`, without loading anything."""
    return model_id("wordllama", MODEL, chosen_dimension(settings), prefix=settings.document_prefix)


class _Pieces:
    """Token ids of texts, cached by the pieces that texts consist of."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._tokenizer: Tokenizer | None = self._read()
        self._kept: dict[str, bytes] = {}
        self._kept_bytes = 0

    def _read(self) -> Tokenizer:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.file))
        # The normaliser marks spaces; the pieces carry their marks. A control token in a text is plain text.
        tokenizer.normalizer = None
        tokenizer.encode_special_tokens = True
        # Each of its threads would remember ten thousand pieces, even after the tokenizer is gone; `_kept` has them.
        # There is no public way for a tokenizer that is read from a file.
        tokenizer.model._resize_cache(0)
        return tokenizer

    def of(self, texts: Sequence[str]) -> list[npt.NDArray[np.uint16]]:
        """Return the tokens of each text in order; none for an empty one."""
        cut = [_pieces(text.lower()) if text else [] for text in texts]
        # Another thread may replace the dictionary at any time: this call continues with the one that it holds.
        kept = self._kept
        new = set().union(*cut).difference(kept)
        if new:
            kept.update(self._tokenise(list(new)))
        find: Callable[[str], bytes] = kept.__getitem__
        return [np.frombuffer(b"".join(map(find, pieces)), np.uint16) for pieces in cut]

    def forget(self) -> None:
        """Free the cache; calls in progress keep theirs."""
        self._kept, self._kept_bytes = {}, 0

    def close(self) -> None:
        """Free the tokenizer, too; the next use reads it again."""
        self.forget()
        self._tokenizer = None

    def _tokenise(self, pieces: list[str]) -> dict[str, bytes]:
        marked = [(piece if "\n" in piece else " " + piece).replace(" ", _SPACE) for piece in pieces]
        tokenizer = self._tokenizer
        if tokenizer is None:
            tokenizer = self._tokenizer = self._read()
        encodings = tokenizer.encode_batch_fast(marked, add_special_tokens=False)
        found = {
            piece: np.array(encoding.ids, np.uint16).tobytes()
            for piece, encoding in zip(pieces, encodings, strict=True)
        }
        self._kept_bytes += sum(_PIECE_OVERHEAD + 4 * len(piece) + len(ids) for piece, ids in found.items())
        if self._kept_bytes > _KEPT_BYTES:
            self.forget()
        return found


def _pieces(text: str) -> list[str]:
    """Cut before each run of spaces and before each line feed.

    A piece is tokenised with one space before it, except a piece with a line feed, which is tokenised as it is.
    """
    spaced = text.replace(_SPACE, " ").replace("\n", " \n")
    if "  " in spaced or spaced.startswith(" "):
        return _WORD_BOUNDARY.split(spaced)
    return spaced.split(" ")


def _add_up(
    table: npt.NDArray[np.float32], rows: npt.NDArray[np.integer], buffer: npt.NDArray[np.float32], into: Vectors
) -> None:
    """Add the sum of some rows of `table` to `into`, in an order that depends only on `rows`."""
    for first in range(0, rows.size, _BLOCK_TOKENS):
        block = rows[first : first + _BLOCK_TOKENS]
        gathered = buffer[: block.size]
        # Any mode but "raise" writes straight into `out`; ids come from the tokenizer and are in range.
        table.take(block, axis=0, out=gathered, mode="clip")
        into += np.add.reduce(gathered, axis=0)


def _package_folder() -> Path:
    # Importing wordllama would load compiled clustering code, configure logging and take most of a second.
    found = importlib.util.find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise SettingsError(
            "the embedder wordllama needs the package wordllama; install it with: pip install wordllama"
        )
    return Path(found.submodule_search_locations[0])


def _token_vectors(file: Path) -> tuple[mmap.mmap, npt.NDArray[np.float16]]:
    """Map float16[vocabulary, dimension] into memory, shared by all processes that read it; return map and array.

    Source: https://huggingface.co/docs/safetensors (eight bytes of header length, a JSON header, the numbers)
    """
    try:
        with file.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise SettingsError(f"wordllama's weights cannot be read, reinstall the package wordllama: {error}") from error
    header_bytes = int.from_bytes(mapped[:8], "little")
    tensor = json.loads(mapped[8 : 8 + header_bytes])[_TENSOR]
    if tensor["dtype"] != "F16" or tensor["shape"][1] != FULL_DIMENSION:
        raise SettingsError(f"wordllama's weights are {tensor['dtype']} {tensor['shape']}, not what this version reads")
    rows = tensor["shape"][0]
    start = 8 + header_bytes + tensor["data_offsets"][0]
    flat = np.frombuffer(mapped, np.float16, rows * FULL_DIMENSION, start)
    return mapped, flat.reshape(rows, FULL_DIMENSION)
