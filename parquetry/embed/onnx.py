"""Exported sentence-transformers models, run on this machine's processors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from parquetry.embed.base import Embedded, Vectors, Worst, model_id
from parquetry.embed.checks import NO_TOKENS, blank, same_dimension, unit_rows
from parquetry.embed.hub import located
from parquetry.embed.onnx_model import by_length, input_types, load_tokenizer, open_session, padded, plain_tokenizer
from parquetry.embed.recipe import Pooling, Recipe, read_recipe
from parquetry.errors import SettingsError
from parquetry.settings.embedding import EmbeddingSettings
from parquetry.settings.hub import NO_HUB, HubSettings, hub_model

if TYPE_CHECKING:
    from tokenizers import Encoding

_REVISION = 1
"""raised whenever the same text may get a different vector"""
_BLOCK_TEXTS = 1024
"""texts tokenised and sorted by length at a time"""
_WHOLE_TEXT_OUTPUT = "sentence_embedding"

Hidden = npt.NDArray[np.float32]
"""float32[texts, tokens, dimension]"""


@dataclass(frozen=True, slots=True)
class _Window:
    """Part of a text that fits into the model's input."""

    row: int
    """0-based position of its text"""
    ids: list[int]
    types: list[int]


WORST = Worst(8, 8)
"""NFKC, the first step of some tokenizers, expands three bytes into up to 18 letters; each window has special tokens"""


class OnnxEmbedder:
    """A model exported to ONNX, with its tokenizer, in a local folder.

    A text longer than the model's input is embedded in windows, and their vectors are averaged, weighted by tokens:
    nothing is cut off.

    Args:
        name: folder (see `read_recipe`) or model of the hub.
        settings: `dimension` keeps only that many leading components; prefixes replace the model's own prompts;
            `max_input_tokens` may make windows smaller.
        hub: settings for a model of the hub.

    Raises:
        MissingExtra: onnxruntime is not installed.
        SettingsError: a file is missing or damaged, or the model does not embed texts.
        TransientError: the hub cannot be reached.
    """

    price_per_million_tokens = 0.0

    def __init__(self, name: str, settings: EmbeddingSettings, hub: HubSettings = NO_HUB) -> None:
        self._recipe, folder = _recipe(name, hub)
        self._folder = folder
        self._document_prefix, self._query_prefix = _prefixes(self._recipe, settings)
        self._session = open_session(self._recipe.model, f"the embedder onnx:{name}")
        self._inputs = input_types(self._session, folder)
        self._output, self._pooled = _choose_output(self._session, folder)
        self.tokenizer_json = plain_tokenizer(self._recipe.tokenizer)
        self._counting = load_tokenizer(self.tokenizer_json, self._recipe.tokenizer)
        self._tokenizer = load_tokenizer(self.tokenizer_json, self._recipe.tokenizer)
        self._tokenizer.enable_truncation(_window_tokens(self._recipe, settings))
        full = self._run([_Window(0, [self._recipe.pad_id], [0])]).shape[1]
        if self._recipe.dimension is not None:
            same_dimension(full, self._recipe.dimension, folder)
        self.dimension = settings.dimension or full
        if self.dimension > full:
            raise SettingsError(f"embedding.dimension is {self.dimension}, but {folder} gives vectors of {full}")
        self.id = _id(self._recipe, self.dimension, settings)

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts of documents; a text without a token is refused."""
        refused = blank(texts)
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        counts = [0] * len(texts)
        rows = [row for row in range(len(texts)) if row not in refused]
        for first in range(0, len(rows), _BLOCK_TEXTS):
            block = rows[first : first + _BLOCK_TEXTS]
            encodings = self._encode([self._document_prefix + texts[row] for row in block])
            windows = []
            for row, encoding in zip(block, encodings, strict=True):
                if all(encoding.special_tokens_mask):
                    refused[row] = NO_TOKENS
                else:
                    cut = [_Window(row, each.ids, each.type_ids) for each in (encoding, *encoding.overflowing)]
                    counts[row] = sum(len(window.ids) for window in cut)
                    windows += cut
            for batch in _batches(windows):
                found = self._run(batch)[:, : self.dimension]
                unit_rows(found)
                for window, vector in zip(batch, found, strict=True):
                    vectors[window.row] += vector * len(window.ids)
        for row, reason in unit_rows(vectors).items():
            refused.setdefault(row, reason)
        return Embedded(vectors, sum(counts), refused, counts)

    def embed_query(self, text: str) -> Vectors:
        """Embed one query: float32[dimension], L2-normalised; zeros for a text without a token."""
        vector = np.zeros((1, self.dimension), np.float32)
        (encoding,) = self._encode([self._query_prefix + text])
        if text.strip() and not all(encoding.special_tokens_mask):
            for window in (encoding, *encoding.overflowing):
                found = self._run([_Window(0, window.ids, window.type_ids)])[:, : self.dimension]
                unit_rows(found)
                vector += found * len(window.ids)
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
        """Count tokens exactly, without the special ones that the model adds."""
        encodings = self._counting.encode_batch_fast(self._cased(texts), add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings]

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch_fast(self._cased(texts))

    def _cased(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() for text in texts] if self._recipe.lower_case else list(texts)

    def _run(self, batch: list[_Window]) -> npt.NDArray[np.float32]:
        """Run the model: float32[windows, dimension of the model]."""
        given = padded([each.ids for each in batch], [each.types for each in batch], self._recipe.pad_id)
        feed = {name: given[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
        (output,) = self._session.run([self._output], feed)
        numbers = np.asarray(output, np.float32)
        if self._pooled:
            return numbers
        if numbers.ndim != 3:
            raise SettingsError(
                f"the model in {self._folder} gives {numbers.ndim}-dimensional {self._output}, not tokens"
            )
        return pool(numbers, given["attention_mask"], self._recipe.pooling)


def embedder_id(name: str, settings: EmbeddingSettings, hub: HubSettings = NO_HUB) -> str | None:
    """Return the id of `OnnxEmbedder(name, settings, hub)`; None if only running the model shows its dimension.

    Raises:
        SettingsError: a file is missing or damaged.
        TransientError: the hub cannot be reached.
    """
    recipe, _ = _recipe(name, hub)
    dimension = settings.dimension or recipe.dimension
    return None if dimension is None else _id(recipe, dimension, settings)


def pool(hidden: Hidden, mask: npt.NDArray[np.int64], how: Pooling) -> npt.NDArray[np.float32]:
    """Pool the vectors of tokens into one vector per text.

    Args:
        hidden: float32[texts, tokens, dimension].
        mask: int64[texts, tokens], 1 for a token and 0 for padding; padding is at the end.
        how: pooling method.
    """
    if how == "cls":
        return np.ascontiguousarray(hidden[:, 0])
    if how == "last":
        last: npt.NDArray[np.float32] = hidden[np.arange(len(hidden)), mask.sum(axis=1) - 1]
        return last
    if how == "max":
        largest: npt.NDArray[np.float32] = np.where(mask[:, :, None] == 1, hidden, -np.inf).max(axis=1)
        return largest
    weights = (mask / mask.sum(axis=1, keepdims=True)).astype(np.float32)
    mean: npt.NDArray[np.float32] = np.matmul(weights[:, None, :], hidden)[:, 0]
    return mean


def _recipe(name: str, hub: HubSettings) -> tuple[Recipe, str]:
    """Return the recipe of a model and its folder."""
    model = hub_model(name)
    if model is None:
        return read_recipe(name), name
    place = located(model, hub)
    return read_recipe(str(place.folder), place.file), str(place.folder)


def _id(recipe: Recipe, dimension: int, settings: EmbeddingSettings) -> str:
    # Neither folder nor hub is part of the id: a model that moves is still the same model. Another revision is another
    # one as soon as it differs in what makes the vectors.
    name = f"{recipe.family}-{recipe.content_hash()}/{_REVISION}"
    document_prefix, _ = _prefixes(recipe, settings)
    limited = settings.max_input_tokens < recipe.max_tokens
    window = str(settings.max_input_tokens) if limited else ""
    return model_id("onnx", name, dimension, prefix=document_prefix, window=window)


def _prefixes(recipe: Recipe, settings: EmbeddingSettings) -> tuple[str, str]:
    """Return the prefixes of documents and of queries."""
    return settings.document_prefix or recipe.document_prompt, settings.query_prefix or recipe.query_prompt


def _window_tokens(recipe: Recipe, settings: EmbeddingSettings) -> int:
    return min(recipe.max_tokens, settings.max_input_tokens)


def _batches(windows: list[_Window]) -> Iterator[list[_Window]]:
    for batch in by_length([len(each.ids) for each in windows]):
        yield [windows[position] for position in batch]


def _choose_output(session: Any, folder: str) -> tuple[str, bool]:
    """Return the output to use, and True if it already is one vector per text."""
    outputs = session.get_outputs()
    for each in outputs:
        if each.name == _WHOLE_TEXT_OUTPUT:
            return each.name, True
    first = outputs[0]
    if first.shape and len(first.shape) not in {2, 3}:
        raise SettingsError(f"the model in {folder} gives {first.name} of shape {first.shape}, which is no embedding")
    return first.name, len(first.shape or ()) == 2
