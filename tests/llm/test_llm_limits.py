"""Limits on the length of a reply: every request has one, and a reply that reaches it is marked as cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from parquetry.errors import BrokenDocument, TransientError
from parquetry.llm.calls import RetryPolicy
from parquetry.llm.client import REPLY_TOKENS, SHORT_REPLY_TOKENS, Completion, LanguageModel
from parquetry.llm.spending import Ledger, Purpose
from parquetry.rerank.llm import LlmReranker
from parquetry.settings.llm import LlmSettings
from tests.servers.chat_server import ChatServer, error, said, said_json, said_too_long, with_caps, without_schemas
from tests.sessions.asking import DirectAsker, learned, proposal

QUESTION = [{"role": "user", "content": "Which kiln dries walnut? Answer with JSON."}]
SCHEMA = {"type": "object", "properties": {"kiln": {"type": "integer"}}, "required": ["kiln"]}
GOOD = said_json({"kiln": 3})
PATIENCE = RetryPolicy(1, lambda _: None, lambda: 0.0, lambda: 0.0)
CAPS = ("max_tokens", "max_completion_tokens")


def asked(
    server: ChatServer,
    purpose: Purpose = "distill",
    question: list[dict[str, Any]] = QUESTION,
    ledger: Ledger | None = None,
    **settings: Any,
) -> Completion:
    chosen = LlmSettings(model="m", base_url=server.url, attempts=1, **settings)
    return LanguageModel(chosen, purpose, ledger, PATIENCE).ask(question, SCHEMA)


def caps(server: ChatServer) -> list[dict[str, int]]:
    return [{name: body[name] for name in CAPS if name in body} for body in server.bodies]


# --- every request has a limit


@pytest.mark.parametrize("purpose", ["describe", "rerank", "distill", "compare"])
def test_every_question_limits_its_reply_by_its_purpose_and_its_own_length(purpose: Purpose):
    """A model that does not stop fills its whole context, which takes minutes and costs money."""
    long = [{"role": "user", "content": "a" * 8_000}]
    longest = [{"role": "user", "content": "a" * 100_000}]
    with ChatServer(lambda _: GOOD) as server:
        for question in (QUESTION, long, longest):
            asked(server, purpose, question)
    most = REPLY_TOKENS[purpose]
    assert caps(server) == [{"max_tokens": each} for each in (SHORT_REPLY_TOKENS, min(2000, most), most)]


def test_images_rankings_and_corrections_are_limited_too():
    with ChatServer([said("A crane."), said("no ranking"), said_json({"ranking": [{"n": 1, "score": 1}]})]) as server:
        settings = LlmSettings(model="m", base_url=server.url)
        LanguageModel(settings, "describe").describe_image(b"\x89PNG", "image/png")
        LlmReranker(settings).judge("Which kiln?", ["Kiln 3."])
    assert len(caps(server)) == 3
    assert all(0 < each["max_tokens"] <= max(REPLY_TOKENS.values()) for each in caps(server))


def test_the_limit_can_be_set_for_a_model_that_thinks_first():
    with ChatServer([GOOD]) as server:
        asked(server, max_reply_tokens=16_000)
    assert caps(server) == [{"max_tokens": 16_000}]


# --- each service has its own parameter for it


@pytest.mark.parametrize("known", CAPS)
def test_a_service_that_knows_one_parameter_alone_is_asked_with_it_and_that_is_remembered(known: str):
    ledger = Ledger()
    with ChatServer(with_caps(lambda _: GOOD, [known])) as server:
        for _ in range(2):
            assert asked(server, ledger=ledger).text == '{"kiln": 3}'
    tried = CAPS[: CAPS.index(known) + 1]
    assert [list(each) for each in caps(server)] == [[name] for name in (*tried, known)]
    assert ledger.warnings == ()


def test_a_service_that_takes_no_limit_is_asked_without_and_that_is_told():
    ledger = Ledger()
    with ChatServer(with_caps(lambda _: GOOD, [])) as server:
        asked(server, ledger=ledger)
    assert caps(server)[-1] == {}
    assert "does not take a limit" in ledger.warnings[0]


def test_where_the_context_has_no_room_for_the_limit_that_question_alone_goes_without():
    long = [{"role": "user", "content": "a" * 16_000}]
    with ChatServer(with_caps(lambda _: GOOD, CAPS, largest=2000)) as server:
        asked(server)
        asked(server, question=long)
        asked(server)
    assert caps(server) == [
        {"max_tokens": 1000},
        {"max_tokens": 4000},
        {"max_completion_tokens": 4000},
        {},
        {"max_tokens": 1000},
    ]


def test_form_and_limit_of_a_service_are_found_out_together():
    rule = without_schemas(with_caps(lambda _: GOOD, ["max_completion_tokens"]))
    with ChatServer(rule) as server:
        asked(server)
        before = len(server.bodies)
        asked(server)
    assert len(server.bodies) == before + 1
    assert server.bodies[-1]["response_format"] == {"type": "json_object"}
    assert caps(server)[-1] == {"max_completion_tokens": 1000}


# --- a service that fails on the response format


def test_a_service_that_fails_over_schemas_is_asked_in_json_mode_and_that_is_remembered():
    """llama-cpp-python answers 500 to `json_schema`, with the name of the parameter in the body."""
    ledger = Ledger()
    with ChatServer(without_schemas(lambda _: GOOD, status=500)) as server:
        for _ in range(2):
            assert asked(server, ledger=ledger).text == '{"kiln": 3}'
    forms = [body["response_format"]["type"] for body in server.bodies]
    assert forms == ["json_schema", "json_object", "json_object"]
    assert "takes no JSON schema" in ledger.warnings[0]


def test_any_other_failure_of_the_service_is_tried_again_in_the_same_form():
    with ChatServer([error(500, "out of memory"), GOOD]) as server:
        settings = LlmSettings(model="m", base_url=server.url, attempts=2)
        LanguageModel(settings, "distill", None, RetryPolicy(2, lambda _: None, lambda: 0.0, lambda: 0.0)).ask(
            QUESTION, SCHEMA
        )
    assert [body["response_format"]["type"] for body in server.bodies] == ["json_schema", "json_schema"]


# --- a reply that reaches the limit


@pytest.mark.parametrize(
    "text", [pytest.param('{"kiln": ', id="in the middle"), pytest.param("", id="before a word"), None]
)
def test_a_reply_that_reaches_the_limit_is_marked_counted_and_not_asked_for_again_by_the_client(text: str | None):
    """The same request would be cut off at the same place and cost as much again."""
    ledger = Ledger()
    with ChatServer([said_too_long(text), said_too_long(text)]) as server:
        for _ in range(2):
            answer = asked(server, ledger=ledger)
            assert (answer.text, answer.cut) == ((text or "").strip(), True)
    assert ledger.warnings == (
        "2 of the model's replies to distill reached the limit of tokens (llm.max_reply_tokens)",
    )


def test_a_description_without_an_end_is_refused():
    with ChatServer([said_too_long("A crane on the")]) as server:
        model = LanguageModel(LlmSettings(model="m", base_url=server.url), "describe")
        with pytest.raises(BrokenDocument) as caught:
            model.describe_image(b"\x89PNG", "image/png")
    assert caught.value.reason == "reply-cut"
    assert "llm.max_reply_tokens" in caught.value.detail


def test_a_ranking_without_an_end_is_asked_for_in_short():
    with ChatServer([said_too_long('{"ranking": [{"n": 1'), said_too_long("{")]) as server:
        reranker = LlmReranker(LlmSettings(model="m", base_url=server.url), PATIENCE)
        with pytest.raises(TransientError, match="cut before its end"):
            reranker.judge("Which kiln?", ["Kiln 3."])
    assert "shorter" in server.bodies[1]["messages"][-1]["content"]


def test_statements_cut_off_are_asked_for_once_more_in_short_and_then_taken():
    cut = json.dumps({"entries": [proposal()] * 40})[:3000]
    with ChatServer([said_too_long(cut), said_json({"entries": [proposal()]})]) as server:
        found = learned(DirectAsker(server))
    assert [draft.text for draft in found.drafts] == ["Walnut is dried in kiln 3."]
    _, _, shown, wanted = server.bodies[1]["messages"]
    assert len(shown["content"]) < 1500, "as much again would be cut again"
    assert "shorter" in wanted["content"]


def test_statements_cut_off_twice_are_quarantined_by_that_name():
    with ChatServer([said_too_long('{"entries": [{"text": "Walnut')] * 2) as server:
        found = learned(DirectAsker(server))
    (refusal,) = found.refusals
    assert (found.drafts, refusal.reason, refusal.quarantined) == ((), "reply-cut", True)
    assert "llm.max_reply_tokens" in refusal.detail


def test_json_that_is_complete_is_used_though_blanks_run_on_to_the_limit():
    with ChatServer([said_too_long(json.dumps({"entries": [proposal()]}) + "\n" * 3000)]) as server:
        found = learned(DirectAsker(server))
    assert len(found.drafts) == 1
