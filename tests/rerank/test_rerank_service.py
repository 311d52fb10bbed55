"""Rerank services, each a real server on loopback: their requests, scores and usage, and their faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parquetry.errors import ServiceRefused, SettingsError, TransientError
from parquetry.llm.calls import RetryPolicy
from parquetry.llm.spending import Usage
from parquetry.rerank.service import RerankService
from parquetry.settings.rerank import KEY_VARIABLE, RerankSettings
from tests.servers.chat_server import NEVER, Reply, busy, cut, error
from tests.servers.rerank_server import APIS, TOKENS, RerankServer, reply_of

QUESTION = "Which kiln dries walnut?"
TEXTS = ["The menu of the week.", "Kiln 3 dries walnut.", "Kiln 1 dries oak."]
GOOD = [0.01, 0.95, 0.3]
KEY = "rk-0123456789abcdef"


def service(server: RerankServer, waits: list[float] | None = None, **settings: Any) -> RerankService:
    attempts = settings.setdefault("attempts", 1)
    policy = RetryPolicy(attempts, (waits if waits is not None else []).append, lambda: 1_700_000_000.0, lambda: 0.0)
    return RerankService("m", RerankSettings(base_url=server.base_url, **settings), policy)


def scores(server: RerankServer, texts: list[str] = TEXTS, **settings: Any) -> list[float]:
    found = service(server, **settings).judge(QUESTION, texts).scores
    assert found.dtype == np.float32
    return [round(float(each), 6) for each in found]


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.mark.parametrize("name", APIS)
def test_every_service_is_asked_in_its_own_form_and_scores_come_in_the_order_of_the_texts(name: str) -> None:
    with RerankServer(name, [GOOD], KEY) as server:
        assert scores(server, api_key=KEY) == GOOD
    (body,) = server.bodies
    assert body["query"] == QUESTION
    if name == "tei":
        assert (body["texts"], body["truncate"]) == (TEXTS, True)
    else:
        assert (body["model"], body["documents"]) == ("m", TEXTS)
        assert body["top_k" if name == "voyage" else "top_n"] == 3


@pytest.mark.parametrize("name", ["voyage", "tei"])
def test_a_form_that_was_accepted_is_remembered(name: str) -> None:
    """Refused requests take time, and may count against a rate limit."""
    with RerankServer(name, [GOOD, GOOD]) as server:
        asked = service(server)
        asked.judge(QUESTION, TEXTS)
        refused = len(server.refused)
        asked.judge(QUESTION, TEXTS)
    assert refused in {1, 2}
    assert len(server.refused) == refused


@pytest.mark.slow
def test_replies_of_the_gateway_are_what_its_package_parses() -> None:
    from litellm.types.rerank import RerankResponse

    told = RerankResponse(**reply_of("litellm", GOOD, TEXTS))
    assert [each["index"] for each in told.results or []] == [1, 2, 0]


@pytest.mark.parametrize("name", APIS)
def test_tokens_are_those_that_the_service_counts(name: str) -> None:
    with RerankServer(name, [GOOD]) as server:
        used = service(server, price_per_million_tokens=1.0).judge(QUESTION, TEXTS).usage
    if name == "cohere":
        # It counts searches alone; tokens are estimated.
        assert 0 < used.input_tokens < TOKENS
    else:
        assert used.input_tokens == TOKENS
    assert (used.calls, used.output_tokens) == (1, 0)
    assert used.cost_usd == pytest.approx(used.input_tokens / 1e6)


def test_a_service_that_charges_by_the_search_is_counted_so() -> None:
    with RerankServer("cohere", [[0.5] * 100, [0.5] * 20]) as server:
        used = service(server, price_per_thousand_searches=2.0).judge(QUESTION, ["text"] * 120).usage
    assert (used.calls, used.cost_usd) == (2, pytest.approx(0.004))


@pytest.mark.parametrize(("name", "most"), [("tei", 32), ("cohere", 100)])
def test_more_texts_than_a_service_takes_are_sent_in_several_requests(name: str, most: int) -> None:
    given = [round(n / 1000, 3) for n in range(150)]
    batches = [given[start : start + most] for start in range(0, 150, most)]
    texts = [f"text {n}" for n in range(150)]
    with RerankServer(name, batches) as server:
        assert scores(server, texts) == given
    field = "texts" if name == "tei" else "documents"
    assert [text for body in server.bodies for text in body[field]] == texts


def test_the_settings_say_how_many_texts_and_how_much_of_each_a_request_has() -> None:
    with RerankServer("tei", [[0.1, 0.2], [0.3]]) as server:
        assert scores(server, TEXTS, batch_texts=2, max_characters=16) == [0.1, 0.2, 0.3]
    assert [body["texts"] for body in server.bodies] == [[TEXTS[0][:16], TEXTS[1][:16]], [TEXTS[2][:16]]]


def test_no_texts_cost_no_request() -> None:
    with RerankServer("jina", []) as server:
        assert service(server).judge(QUESTION, []).usage == Usage()


# --- scales


def test_logits_become_probabilities_and_cosines_stay() -> None:
    with RerankServer("vllm", [[-8.0, 0.0, 800.0]]) as server:
        assert scores(server, scores="logit") == [pytest.approx(0.000335, abs=1e-6), 0.5, 1.0]
    with RerankServer("jina", [[-0.2, 0.4, 0.9]]) as server:
        assert scores(server, scores="cosine") == [-0.2, 0.4, 0.9]


@pytest.mark.parametrize(
    ("given", "scale", "advice"),
    [
        ([0.1, 4.2, 0.3], "probability", "logit"),
        ([0.1, -0.2, 0.3], "probability", "cosine"),
        ([0, 3, 0], "cosine", "logit"),
    ],
)
def test_scores_of_another_scale_are_an_error_that_names_the_setting(
    given: list[float], scale: str, advice: str
) -> None:
    """Taken for probabilities, every logit above one would be as relevant as can be."""
    with RerankServer("vllm", [given]) as server, pytest.raises(ServiceRefused) as caught:
        scores(server, attempts=3, scores=scale)
    assert f'"{advice}"' in str(caught.value)
    assert f"gave the score {given[1]:g}" in str(caught.value)


def test_rounding_errors_are_within_the_scale() -> None:
    with RerankServer("vllm", [[1.0000001, -1e-9, 0.5]]) as server:
        assert scores(server) == [1.0, 0.0, 0.5]


# --- faults


def listed(*items: Any) -> Reply:
    return Reply(200, {"results": list(items)})


def item(index: Any, score: Any) -> dict[str, Any]:
    return {"index": index, "relevance_score": score}


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param(listed(item(0, 0.1), item(1, 0.2)), "3 texts with 2 scores", id="too few"),
        pytest.param(listed(*(item(n, 0.1) for n in (0, 1, 2, 3))), "index 3", id="too many"),
        pytest.param(listed(item(0, 0.1), item(1, 0.2), item(1, 0.3)), "index 1", id="one twice"),
        pytest.param(listed(item(0, 0.1), item(1, 0.2), item(-1, 0.3)), "index -1", id="negative"),
        pytest.param(listed(item(0, 0.1), item(True, 0.2), item(2, 0.3)), "index -1", id="index that is none"),
        pytest.param(Reply(200, b'{"results": [{"index": 0, "relevance_score": NaN}]}'), "with 1 scores", id="one NaN"),
        pytest.param(listed(*(item(n, float("nan")) for n in range(3))), "no number: nan", id="NaN"),
        pytest.param(listed(*(item(n, 10**400) for n in range(3))), "no number: 1000", id="too large a number"),
        pytest.param(listed(*(item(n, "0.5") for n in range(3))), "no number: '0.5'", id="text"),
        pytest.param(listed(*({"index": n} for n in range(3))), "no number: None", id="no score"),
        pytest.param(listed(1, 2, 3), "sent no results", id="no objects"),
        pytest.param(Reply(200, {"results": None}), "sent no results", id="null"),
        pytest.param(Reply(200, {"error": "busy"}), "sent no results", id="another object"),
        pytest.param(Reply(200, []), "3 texts with 0 scores", id="empty list"),
        pytest.param(Reply(200, "0.5"), "sent no results", id="text for an answer"),
        pytest.param(Reply(200, b"<html>Bad Gateway</html>"), "no JSON", id="a page"),
        pytest.param(Reply(200, b"9" * 5000), "no JSON", id="a number without end"),
        pytest.param(Reply(200, b"[" * 200_000), "no JSON", id="deep"),
        pytest.param(Reply(200, b" " * (33 << 20)), "more than 32 MiB", id="huge"),
        pytest.param(cut(listed(item(0, 0.1)), 9), "127.0.0.1", id="cut off"),
    ],
)
def test_an_answer_that_is_none_is_asked_for_again_and_then_an_error(reply: Reply, message: str) -> None:
    waits: list[float] = []
    with RerankServer("jina", [reply, GOOD]) as server:
        found = service(server, waits, attempts=2).judge(QUESTION, TEXTS)
    assert (found.scores.round(2).tolist(), len(waits)) == (pytest.approx(GOOD), 1)
    with RerankServer("jina", [reply]) as server, pytest.raises(TransientError, match=message) as caught:
        scores(server)
    assert "\n" not in str(caught.value)


def test_a_wait_that_the_service_asks_for_is_honoured() -> None:
    waits: list[float] = []
    with RerankServer("cohere", [busy(7), error(503, "overloaded", Retry_After="2"), GOOD]) as server:
        service(server, waits, attempts=3).judge(QUESTION, TEXTS)
    assert waits == [7, 2]


@pytest.mark.parametrize(
    ("status", "reason"), [(429, "rate-limited"), (500, "service-failed"), (503, "service-failed")]
)
def test_an_outage_is_an_error_after_the_last_try(status: int, reason: str) -> None:
    """Never the order of the first stage in its place."""
    with RerankServer("vllm", [error(status, "no")] * 2) as server, pytest.raises(TransientError) as caught:
        scores(server, attempts=2)
    assert caught.value.reason == reason
    assert str(status) in str(caught.value)


def test_a_service_that_says_nothing_and_one_that_is_not_there_are_outages() -> None:
    with RerankServer("vllm", [NEVER]) as server, pytest.raises(TransientError, match="did not answer in time"):
        scores(server, timeout_seconds=0.3)
    gone = RerankService("m", RerankSettings(base_url=server.base_url, attempts=1))
    with pytest.raises(TransientError, match="cannot be reached"):
        gone.judge(QUESTION, TEXTS)


def test_a_key_that_is_refused_is_said_with_its_variable_and_never_shown() -> None:
    refusal = error(401, f"the key {KEY} is not known")
    with RerankServer("cohere", [refusal]) as server, pytest.raises(ServiceRefused) as caught:
        scores(server, attempts=3, api_key=KEY)
    assert KEY_VARIABLE in str(caught.value)
    assert KEY not in str(caught.value)
    assert KEY not in repr(RerankSettings(api_key=KEY))


@pytest.mark.parametrize(
    ("status", "said"), [(400, "Model m is not supported"), (404, "no such model"), (422, "query is too long")]
)
def test_a_request_that_is_refused_is_not_repeated(status: int, said: str) -> None:
    with RerankServer("voyage", [error(status, said)]) as server, pytest.raises(ServiceRefused, match=said):
        scores(server, attempts=3)
    assert len(server.bodies) == 1


def test_a_redirect_is_not_followed() -> None:
    """It would hand texts of the corpus to a server that nobody named."""
    with RerankServer("jina", []) as other:
        away = Reply(307, {}, {"Location": f"{other.base_url}/rerank"})
        with RerankServer("jina", [away]) as server, pytest.raises(ServiceRefused, match="answered 307"):
            scores(server, attempts=3)
    assert other.bodies == []


# --- settings


def test_the_key_is_the_settings_own_or_that_of_the_environment_and_never_another_services(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-service")
    with RerankServer("jina", [GOOD, GOOD, GOOD]) as server:
        scores(server)
        monkeypatch.setenv(KEY_VARIABLE, KEY)
        scores(server)
        scores(server, api_key="rk-of-the-settings")
    assert server.keys == ["Bearer none", f"Bearer {KEY}", "Bearer rk-of-the-settings"]


def test_the_address_of_the_route_itself_is_understood() -> None:
    assert RerankSettings(base_url="https://api.cohere.com/v2/rerank").base_url == "https://api.cohere.com/v2"
    with pytest.raises(SettingsError, match="set base_url in"):
        RerankService("m", RerankSettings())


@pytest.mark.parametrize(
    "address", ["ftp://host", "host:80", "http://user:pw@host/v1", "http://host/v1?key=k", "http:// host"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        RerankSettings(base_url=address)


def test_texts_with_any_characters_are_sent_as_they_are_and_half_a_character_as_a_mark() -> None:
    strange = ["a\x00b", '"}], "query": "other"', "\U0001f333", "half \ud800 one"]
    with RerankServer("jina", [[0.1, 0.2, 0.3, 0.4]]) as server:
        found = service(server).judge("\udfff", strange).scores
    assert found.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert server.bodies[0]["documents"] == [*strange[:3], "half ? one"]
    assert server.bodies[0]["query"] == "?"
