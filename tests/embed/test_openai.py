"""The API embedder against a real server on loopback: requests, costs and retries."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from pydantic import SecretStr

from parquetry.embed.openai import OpenAIEmbedder, embedder_id
from parquetry.errors import SettingsError, TransientError, classify
from parquetry.llm.calls import LONGEST_WAIT, RetryPolicy
from parquetry.settings.embedding import EmbeddingSettings
from tests.embed.embedding_client import NOON, expected, open_on, poisoned
from tests.servers.embedding_server import EmbeddingServer, Reply, Request, embeddings, refusal, scripted

# --- requests


def test_texts_are_batched_by_count_and_come_back_in_order() -> None:
    texts = [f"text {number}" for number in range(23)]
    with EmbeddingServer() as server:
        embedded = open_on(server, batch_inputs=10).embed(texts)
    assert [len(request.inputs) for request in server.requests] == [10, 10, 3]
    np.testing.assert_allclose(embedded.vectors, expected(texts), atol=1e-6)
    assert embedded.tokens == 46
    assert embedded.refused == {}


def test_texts_are_batched_by_estimated_tokens() -> None:
    with EmbeddingServer() as server:
        open_on(server, batch_tokens=20).embed(["x" * 30] * 5)
    assert [len(request.inputs) for request in server.requests] == [2, 2, 1]


def test_many_queries_are_one_request() -> None:
    with EmbeddingServer() as server:
        open_on(server, query_prefix="query: ").embed_queries(["a", " ", "b"])
    assert [request.inputs for request in server.requests] == [["query: a", "query: b"]]


def test_a_text_that_may_be_too_long_for_the_model_goes_alone() -> None:
    """If the service refuses it, no other text has to be sent twice."""
    with EmbeddingServer(poisoned("long")) as server:
        embedded = open_on(server, max_input_tokens=10).embed(["a", "long " * 20, "b"])
    # No request has succeeded yet, so one probe follows the refusal.
    assert sorted(len(request.inputs) for request in server.requests) == [1, 1, 2]
    assert list(embedded.refused) == [1]


def test_prefixes_reach_the_service_and_only_the_documents_one_is_in_the_id() -> None:
    """A new query prefix must not cost a new embedding of the corpus."""
    with EmbeddingServer() as server:
        embedder = open_on(server, document_prefix="passage: ", query_prefix="query: ")
        embedder.embed(["a"])
        embedder.embed_query("b")
    assert [request.inputs for request in server.requests] == [["passage: a"], ["query: b"]]
    plain = EmbeddingSettings(dimension=8)
    assert embedder.id != embedder_id("m", plain)
    assert embedder_id("m", plain.model_copy(update={"query_prefix": "query: "})) == embedder_id("m", plain)


def test_the_key_of_the_settings_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    with EmbeddingServer() as server:
        open_on(server, api_key=SecretStr("from-settings")).embed(["a"])
        open_on(server).embed(["a"])
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer from-settings", "Bearer from-environment"]


def test_the_endpoint_of_the_environment_is_used_and_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddingServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        OpenAIEmbedder("m", EmbeddingSettings(dimension=8)).embed(["a"])
    assert len(server.requests) == 1


def test_openai_itself_without_a_key_names_the_variable_to_set() -> None:
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        OpenAIEmbedder("text-embedding-3-small", EmbeddingSettings())


def test_blank_texts_are_refused_without_a_request() -> None:
    with EmbeddingServer() as server:
        embedded = open_on(server).embed(["", " \n\t"])
    assert server.requests == []
    assert {row: reason.partition(":")[0] for row, reason in embedded.refused.items()} == {
        0: "no-tokens",
        1: "no-tokens",
    }


# --- dimension, id, price


def test_an_unknown_dimension_is_asked_for_once() -> None:
    with EmbeddingServer() as server:
        embedder = open_on(server, dimension=None)
        assert embedder_id("m", EmbeddingSettings()) is None
        assert embedder.id == "openai:m/1@8"
        assert embedder.dimension == 8
        embedder.embed(["a"])
    assert len(server.requests) == 2
    assert "dimensions" not in server.requests[0].body


def test_a_wanted_dimension_is_asked_of_the_service() -> None:
    with EmbeddingServer() as server:
        embedder = open_on(server, dimension=5)
        assert embedder.embed(["a"]).vectors.shape == (1, 5)
    assert server.requests[0].body["dimensions"] == 5
    assert embedder.id == "openai:m/1@5"


def test_a_service_that_ignores_the_wanted_dimension_stops_the_run() -> None:
    """Vectors of two lengths must never meet in one corpus."""
    reply = embeddings(Request(["a"], {"model": "m"}, {}), dimension=8)
    with EmbeddingServer(scripted([reply])) as server, pytest.raises(SettingsError, match="8 numbers where 5"):
        open_on(server, dimension=5).embed(["a"])


def test_known_models_have_an_id_and_a_price_without_a_request() -> None:
    settings = EmbeddingSettings(api_key=SecretStr("k"))
    embedder = OpenAIEmbedder("text-embedding-3-small", settings)
    assert embedder.id == embedder_id("text-embedding-3-small", settings) == "openai:text-embedding-3-small/1@1536"
    assert embedder.price_per_million_tokens == 0.02
    assert (
        embedder_id("text-embedding-3-small", EmbeddingSettings(dimension=512)) == "openai:text-embedding-3-small/1@512"
    )


def test_another_service_costs_what_the_settings_say() -> None:
    elsewhere = EmbeddingSettings(base_url="http://127.0.0.1:9/v1")
    assert OpenAIEmbedder("text-embedding-3-small", elsewhere).price_per_million_tokens is None
    free = elsewhere.model_copy(update={"price_per_million_tokens": 0})
    assert OpenAIEmbedder("text-embedding-3-small", free).price_per_million_tokens == 0
    priced = elsewhere.model_copy(update={"price_per_million_tokens": 0.5})
    assert OpenAIEmbedder("text-embedding-3-small", priced).price_per_million_tokens == 0.5


def test_token_counts_are_upper_estimates_from_bytes() -> None:
    embedder = OpenAIEmbedder("m", EmbeddingSettings(base_url="http://127.0.0.1:9/v1"))
    assert embedder.count_tokens(["", "abc", "abcd", "漢字"]) == [0, 1, 2, 2]


# --- retries


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_a_failure_that_may_go_away_is_tried_again(status: int) -> None:
    slept: list[float] = []
    with EmbeddingServer(scripted([refusal(status, "busy"), refusal(status, "busy"), embeddings])) as server:
        embedded = open_on(server, slept).embed(["a"])
    np.testing.assert_allclose(embedded.vectors, expected(["a"]), atol=1e-6)
    assert slept == [0.5, 1.0]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({"retry_after": "7"}, 7.0, id="seconds"),
        pytest.param({"retry_after_ms": "1500", "retry_after": "7"}, 1.5, id="milliseconds win"),
        pytest.param({"retry_after": "Tue, 14 Nov 2023 22:13:40 GMT"}, 20.0, id="date"),
        pytest.param({"retry_after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0, id="date gone by"),
        pytest.param({"retry_after": "86400"}, LONGEST_WAIT, id="a day is capped"),
        pytest.param({"retry_after": "soon"}, 0.5, id="nonsense is ignored"),
        pytest.param({"retry_after": "-3"}, 0.5, id="the past is ignored"),
        pytest.param({"retry_after": "nan"}, 0.5, id="no number is ignored"),
    ],
)
def test_the_wait_that_the_service_asks_for_is_kept(headers: dict[str, str], seconds: float) -> None:
    slept: list[float] = []
    with EmbeddingServer(scripted([refusal(429, "slow down", **headers), embeddings])) as server:
        open_on(server, slept).embed(["a"])
    assert slept == [seconds]


def test_waits_differ_between_callers() -> None:
    waits: list[float] = []
    with EmbeddingServer(scripted([refusal(500, "busy"), refusal(500, "busy"), embeddings])) as server:
        settings = EmbeddingSettings(base_url=server.url, dimension=8)
        spread = iter([0.0, 1.0])
        OpenAIEmbedder("m", settings, RetryPolicy(3, waits.append, lambda: NOON, lambda: next(spread))).embed(["a"])
    assert waits == [0.5, 1.25]


def test_a_failure_that_stays_is_given_up_as_transient_with_the_asked_wait() -> None:
    script = scripted([refusal(429, "slow down", retry_after="9")] * 4)
    with EmbeddingServer(script) as server, pytest.raises(TransientError) as caught:
        open_on(server).embed(["a"])
    assert caught.value.reason == "rate-limited"
    assert caught.value.retry_after == 9
    assert len(server.requests) == 4


def test_a_service_that_is_not_there_is_unreachable_not_broken() -> None:
    with EmbeddingServer() as server:
        url = server.url
    settings = EmbeddingSettings(base_url=url, dimension=8, attempts=2)
    slept: list[float] = []
    with pytest.raises(TransientError) as caught:
        OpenAIEmbedder("m", settings, RetryPolicy(2, slept.append)).embed(["a"])
    assert classify(caught.value).fate == "retry"
    assert caught.value.reason == "unreachable"
    assert len(slept) == 1


def test_a_service_that_does_not_answer_times_out() -> None:
    import threading

    released = threading.Event()

    def never(request: Request) -> Reply:
        released.wait(20)
        return embeddings(request)

    with EmbeddingServer(never) as server:
        try:
            with pytest.raises(TransientError) as caught:
                open_on(server, attempts=1, timeout_seconds=0.2).embed(["a"])
        finally:
            released.set()
    assert caught.value.reason == "timeout"


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(refusal(429, "You exceeded your current quota", "insufficient_quota"), id="quota"),
        pytest.param(refusal(402, "Payment required"), id="payment"),
        pytest.param(refusal(401, "Incorrect API key"), id="key"),
        pytest.param(refusal(403, "Country not supported"), id="forbidden"),
        pytest.param(refusal(404, "The model `m` does not exist", "model_not_found"), id="model"),
    ],
)
def test_what_the_operator_must_mend_stops_after_one_request(reply: Reply) -> None:
    with EmbeddingServer(scripted([reply])) as server, pytest.raises(SettingsError) as caught:
        open_on(server).embed(["a", "b"])
    assert reply.body["error"]["message"] in str(caught.value)
    assert classify(caught.value).fate == "stop"


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        (refusal(429, "exceeded", "insufficient_quota"), "has no quota left"),
        (refusal(402, "Payment required"), "has no quota left"),
        (refusal(401, "Incorrect"), "check OPENAI_API_KEY"),
        (refusal(404, "unknown"), "check base_url and the model's name"),
    ],
    ids=["quota", "payment", "key", "model"],
)
def test_what_the_operator_must_mend_comes_with_what_to_do(reply: Reply, advice: str) -> None:
    with EmbeddingServer(scripted([reply])) as server, pytest.raises(SettingsError, match=advice):
        open_on(server).embed(["a"])


def test_vectors_paid_for_before_an_interruption_are_not_paid_for_again() -> None:
    texts = [f"text {number}" for number in range(6)]
    script = scripted([embeddings, embeddings, *[refusal(503, "down")] * 4, embeddings])
    with EmbeddingServer(script) as server:
        embedder = open_on(server, batch_inputs=2)
        with pytest.raises(TransientError):
            embedder.embed(texts)
        embedded = embedder.embed(texts)
    assert server.requests[-1].inputs == texts[4:]
    np.testing.assert_allclose(embedded.vectors, expected(texts), atol=1e-6)
    assert embedded.tokens == 4


def test_opening_the_embedder_does_not_load_the_client_library() -> None:
    """A plan needs the id and the price, not a client that takes a second to import."""
    import subprocess

    code = (
        "import sys; from parquetry.embed.registry import open_embedder; from parquetry.settings.sections import *;"
        "e = open_embedder('openai:m', EmbeddingSettings(base_url='http://127.0.0.1:9/v1', dimension=3)); e.id;"
        "import json; print(json.dumps(sorted({'openai', 'tenacity', 'onnxruntime', 'tokenizers'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
    assert done.stderr == ""
