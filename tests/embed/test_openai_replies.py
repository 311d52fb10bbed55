"""The API embedder against a real server on loopback: poisoned inputs and untrustworthy replies."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from parquetry.errors import SettingsError
from tests.embed.embedding_client import expected, open_on, poisoned
from tests.servers.embedding_server import Answer, EmbeddingServer, Reply, Request, embeddings, refusal, scripted

# --- poisoned inputs


@pytest.mark.parametrize("size", [2, 7, 64, 256])
def test_one_poisoned_text_costs_two_requests_per_halving(size: int) -> None:
    texts = [f"text {number}" for number in range(size)]
    texts[size // 3] = "poison"
    with EmbeddingServer(poisoned("poison")) as server:
        embedder = open_on(server)
        embedder.embed_query("proves that the service works")
        embedded = embedder.embed(texts)
    assert list(embedded.refused) == [size // 3]
    assert embedded.refused[size // 3].startswith("input-rejected: ")
    assert "cannot be processed" in embedded.refused[size // 3]
    assert not embedded.vectors[size // 3].any()
    good = [row for row in range(size) if row != size // 3]
    np.testing.assert_allclose(embedded.vectors[good], expected([texts[row] for row in good]), atol=1e-6)
    assert len(server.requests) - 2 <= 2 * math.ceil(math.log2(size))


def test_several_poisoned_texts_are_all_found_and_nothing_else_is_lost() -> None:
    texts = [f"poison {number}" if number in {0, 31, 99} else f"text {number}" for number in range(100)]
    with EmbeddingServer(poisoned("poison")) as server:
        embedded = open_on(server).embed(texts)
    assert sorted(embedded.refused) == [0, 31, 99]
    assert np.linalg.norm(embedded.vectors, axis=1).sum() == pytest.approx(97)
    assert len(server.requests) <= 2 + 3 * 2 * math.ceil(math.log2(100))


def test_a_request_that_is_only_too_large_as_a_whole_refuses_nothing() -> None:
    def small_only(request: Request) -> Reply:
        return embeddings(request) if len(request.inputs) <= 3 else refusal(413, "payload too large")

    texts = [f"text {number}" for number in range(10)]
    with EmbeddingServer(small_only) as server:
        embedded = open_on(server).embed(texts)
    assert embedded.refused == {}
    np.testing.assert_allclose(embedded.vectors, expected(texts), atol=1e-6)


def test_a_service_that_refuses_everything_stops_instead_of_refusing_every_document() -> None:
    """A wrong dimension or model name must not fail the whole corpus text by text."""
    complaint = "this model does not support dimensions"
    with EmbeddingServer(lambda _: refusal(400, complaint)) as server, pytest.raises(SettingsError, match=complaint):
        open_on(server).embed([f"text {number}" for number in range(50)])
    assert len(server.requests) == 3


def test_a_service_without_base64_is_asked_for_floats() -> None:
    def floats_only(request: Request) -> Reply:
        return (
            embeddings(request)
            if request.body["encoding_format"] == "float"
            else refusal(422, "unknown encoding_format")
        )

    with EmbeddingServer(floats_only) as server:
        embedder = open_on(server)
        first = embedder.embed(["a", "b"])
        embedder.embed(["c"])
    np.testing.assert_allclose(first.vectors, expected(["a", "b"]), atol=1e-6)
    assert [request.body["encoding_format"] for request in server.requests] == [
        "base64", "base64", "float", "float", "float",
    ]  # fmt: skip


def test_a_service_that_sends_floats_although_asked_for_base64_is_understood() -> None:
    with EmbeddingServer(lambda request: embeddings(Request(request.inputs, {"model": "m"}, {}))) as server:
        np.testing.assert_allclose(open_on(server).embed(["a"]).vectors, expected(["a"]), atol=1e-6)


def test_a_refused_query_says_so() -> None:
    with EmbeddingServer(poisoned("poison")) as server, pytest.raises(SettingsError, match="cannot be processed"):
        open_on(server).embed_query("poison")


def test_one_refused_query_among_many_stops_them_all() -> None:
    with (
        EmbeddingServer(poisoned("poison")) as server,
        pytest.raises(SettingsError, match="one of 2 queries cannot be embedded"),
    ):
        open_on(server).embed_queries(["fine", "poison"])


# --- replies


def rearranged(change: Callable[[list[dict[str, object]]], list[dict[str, object]]]) -> Answer:
    def answer(request: Request) -> Reply:
        reply = embeddings(request)
        return Reply(200, reply.body | {"data": change(reply.body["data"])})

    return answer


def test_a_reply_in_another_order_is_sorted_by_its_index() -> None:
    texts = ["a", "b", "c"]
    with EmbeddingServer(rearranged(lambda data: data[::-1])) as server:
        np.testing.assert_allclose(open_on(server).embed(texts).vectors, expected(texts), atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data[:-1], id="one missing"),
        pytest.param(lambda data: [*data, data[0]], id="one too many"),
        pytest.param(lambda data: [data[0], data[0]], id="one twice"),
        pytest.param(lambda data: [data[0], data[1] | {"index": 9}], id="index out of range"),
        pytest.param(lambda data: [data[0], data[1] | {"index": "1"}], id="index is text"),
        pytest.param(lambda data: [data[0], {"index": 1}], id="no vector"),
        pytest.param(lambda data: [data[0], data[1] | {"embedding": None}], id="vector is null"),
        pytest.param(lambda data: [data[0], data[1] | {"embedding": "%%%"}], id="not base64"),
        pytest.param(lambda data: [data[0], data[1] | {"embedding": "QUJD"}], id="three bytes"),
        pytest.param(lambda data: [data[0], data[1] | {"embedding": [1.0, 2.0]}], id="another length"),
        pytest.param(lambda data: [data[0], data[1] | {"embedding": ["x"] * 8}], id="words"),
        pytest.param(lambda data: [data[0], data[1] | {"embedding": [[1.0] * 8]}], id="nested"),
        pytest.param(lambda data: None, id="no data"),
        pytest.param(lambda data: [1, 2], id="data of another kind"),
    ],
)
def test_a_reply_that_does_not_fit_the_request_is_asked_for_again(change: object) -> None:
    with EmbeddingServer(scripted([rearranged(change), embeddings])) as server:
        embedded = open_on(server).embed(["a", "b"])
    np.testing.assert_allclose(embedded.vectors, expected(["a", "b"]), atol=1e-6)


def test_a_reply_that_is_no_json_is_asked_for_again() -> None:
    page = Reply(200, b"<html>gateway</html>", {"Content-Type": "text/html"})
    half = Reply(200, b'{"data": [', {"Content-Type": "application/json"})
    words, broken = Reply(200, b'"busy"'), Reply(200, b"\xff\xfe\x00")
    with EmbeddingServer(scripted([page, half, words, broken, embeddings])) as server:
        np.testing.assert_allclose(open_on(server, attempts=5).embed(["a"]).vectors, expected(["a"]), atol=1e-6)


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [([math.nan] * 8, "not-finite"), ([math.inf] + [0.0] * 7, "not-finite"), ([0.0] * 8, "zero-vector")],
    ids=["nan", "infinity", "zeros"],
)
def test_a_vector_without_direction_is_refused_and_zeroed(numbers: list[float], reason: str) -> None:
    """A NaN would rank before every good hit."""
    change = rearranged(lambda data: [data[0] | {"embedding": numbers}, data[1]])
    with EmbeddingServer(change) as server:
        embedded = open_on(server).embed(["a", "b"])
    assert embedded.refused[0].startswith(reason)
    assert not embedded.vectors[0].any()
    np.testing.assert_allclose(embedded.vectors[1:], expected(["b"]), atol=1e-6)


def test_tokens_are_estimated_where_the_service_does_not_tell() -> None:
    with EmbeddingServer(lambda request: embeddings(request, usage=None)) as server:
        assert open_on(server).embed(["x" * 30, "y" * 30]).tokens == 20
