"""The contract of every embedder, independent of its provider."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from parquetry.embed.base import Embedder
from parquetry.embed.registry import embedder_id, open_embedder
from parquetry.settings.embedding import EmbeddingSettings
from tests.embed.tiny_onnx import build_folder
from tests.servers.embedding_server import EmbeddingServer

TEXTS = ["red cat", "green dog runs", "blue bird sleeps", "red", "cat cat cat dog"]


@pytest.fixture(params=["wordllama", "openai", "onnx"])
def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Embedder]:
    match request.param:
        case "wordllama":
            yield open_embedder("wordllama", EmbeddingSettings())
        case "onnx":
            yield open_embedder(f"onnx:{build_folder(tmp_path)}", EmbeddingSettings())
        case "openai":
            with EmbeddingServer() as server:
                yield open_embedder("openai:m", EmbeddingSettings(base_url=server.url, batch_inputs=3))


def test_vectors_have_the_models_shape_and_length_one(embedder: Embedder) -> None:
    embedded = embedder.embed(TEXTS)
    assert embedded.vectors.shape == (len(TEXTS), embedder.dimension)
    assert embedded.vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(embedded.vectors, axis=1), 1, atol=1e-6)
    assert embedded.refused == {}
    assert embedded.tokens > 0


def test_the_id_names_provider_and_dimension(embedder: Embedder) -> None:
    assert embedder.id.endswith(f"@{embedder.dimension}")
    assert embedder.id.partition(":")[0] in {"wordllama", "openai", "onnx"}


def test_the_same_text_always_gets_the_same_vector(embedder: Embedder) -> None:
    first, second = embedder.embed(TEXTS), embedder.embed(TEXTS)
    np.testing.assert_array_equal(first.vectors, second.vectors)


def test_a_vector_depends_on_its_text_and_not_on_its_neighbours(embedder: Embedder) -> None:
    """A refresh embeds only what changed: it must get the same vectors as a rebuild."""
    together = embedder.embed(TEXTS).vectors
    backwards = embedder.embed(TEXTS[::-1]).vectors[::-1]
    np.testing.assert_allclose(together, backwards, atol=1e-6)
    for text, vector in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(embedder.embed([text]).vectors[0], vector, atol=1e-6)


def test_different_texts_get_different_vectors(embedder: Embedder) -> None:
    similarity = embedder.embed(TEXTS).vectors @ embedder.embed(TEXTS).vectors.T
    assert (similarity - 2 * np.eye(len(TEXTS), dtype=np.float32)).max() < 0.9999


def test_nothing_gives_an_empty_table_of_the_right_width(embedder: Embedder) -> None:
    embedded = embedder.embed([])
    assert embedded.vectors.shape == (0, embedder.dimension)
    assert embedded.vectors.dtype == np.float32
    assert (embedded.tokens, embedded.refused, list(embedded.token_counts)) == (0, {}, [])


def test_a_text_with_nothing_to_embed_is_refused_with_zeros_and_the_others_are_not(embedder: Embedder) -> None:
    embedded = embedder.embed(["red cat", "", " \n\t ", "blue"])
    assert sorted(embedded.refused) == [1, 2]
    assert all(reason.startswith("no-tokens: ") for reason in embedded.refused.values())
    assert not embedded.vectors[[1, 2]].any()
    np.testing.assert_allclose(np.linalg.norm(embedded.vectors[[0, 3]], axis=1), 1, atol=1e-6)


def test_a_query_lies_where_the_same_text_as_a_document_lies(embedder: Embedder) -> None:
    query = embedder.embed_query("green dog runs")
    assert query.shape == (embedder.dimension,)
    assert query.dtype == np.float32
    np.testing.assert_allclose(query, embedder.embed(["green dog runs"]).vectors[0], atol=1e-6)


def test_a_blank_query_has_no_direction(embedder: Embedder) -> None:
    np.testing.assert_array_equal(embedder.embed_query(" "), np.zeros(embedder.dimension, np.float32))


def test_every_text_has_a_count_of_tokens(embedder: Embedder) -> None:
    texts = [*TEXTS, ""]
    counts, embedded = embedder.count_tokens(texts), embedder.embed(texts)
    assert len(counts) == len(embedded.token_counts) == len(texts)
    assert all(count > 0 for count in counts[:-1])
    assert counts[-1] == 0
    assert all(of_model >= of_text for of_model, of_text in zip(embedded.token_counts, counts, strict=True))


def test_the_tokenizer_that_sizes_chunks_counts_like_the_embedder(embedder: Embedder) -> None:
    from tokenizers import Tokenizer

    if embedder.tokenizer_json is not None:
        encodings = Tokenizer.from_str(embedder.tokenizer_json).encode_batch(TEXTS, add_special_tokens=False)
        assert [len(encoding.ids) for encoding in encodings] == embedder.count_tokens(TEXTS)


def test_eight_threads_get_what_one_gets(embedder: Embedder) -> None:
    batches = [[f"{text} {number % 3}" for text in TEXTS for number in range(first, first + 4)] for first in range(16)]
    expected = [embedder.embed(batch).vectors for batch in batches]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda batch: embedder.embed(batch).vectors, batches))
    assert len(found) == len(expected)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_threads_that_ask_at_once_share_one_model(tmp_path: Path) -> None:
    name = f"onnx:{build_folder(tmp_path)}"
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: open_embedder(name, EmbeddingSettings()), range(8)))
    assert len({id(each) for each in opened}) == 1


def test_the_id_is_known_without_opening(tmp_path: Path) -> None:
    folder = build_folder(tmp_path, files={"config.json": {"hidden_size": 6}})
    for name in ("wordllama", f"onnx:{folder}"):
        assert embedder_id(name, EmbeddingSettings()) == open_embedder(name, EmbeddingSettings()).id


def test_queries_together_lie_where_each_lies_alone(embedder: Embedder) -> None:
    queries = [*TEXTS, " ", "green dog runs", ""]
    together = embedder.embed_queries(queries)
    assert together.shape == (len(queries), embedder.dimension)
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, [embedder.embed_query(query) for query in queries], atol=1e-6)
    assert embedder.embed_queries([]).shape == (0, embedder.dimension)
