"""Replies are constrained to a schema where the service supports it; limits; broken lines and oversized replies."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from parquetry.errors import BrokenDocument, SettingsError, TransientError
from parquetry.llm.calls import RetryPolicy
from parquetry.llm.client import ANSWER_TOKENS, REPLY_BYTES, Completion, LanguageModel, expected_tokens
from parquetry.llm.rate_limit import ModelRateLimit
from parquetry.llm.spending import Ledger
from parquetry.settings.llm import LlmSettings
from tests.servers.chat_server import (
    NEVER,
    ChatServer,
    Reply,
    busy,
    cut,
    error,
    huge,
    said,
    said_json,
    shortened,
    stalled,
    without_schemas,
)

QUESTION = [{"role": "user", "content": "Which kiln dries walnut? Answer with JSON."}]
SCHEMA = {"type": "object", "properties": {"kiln": {"type": "integer"}}, "required": ["kiln"]}
GOOD = said_json({"kiln": 3})


def asked(
    server: ChatServer,
    schema: Any = None,
    *,
    attempts: int = 1,
    ledger: Ledger | None = None,
    timeout: float = 60,
    rate_limit: ModelRateLimit | None = None,
) -> Completion:
    settings = LlmSettings(model="m", base_url=server.url, attempts=attempts, timeout_seconds=timeout)
    retry_policy = RetryPolicy(attempts, lambda _: None, lambda: 1_700_000_000.0, lambda: 0.0)
    return LanguageModel(settings, "distill", ledger, retry_policy, rate_limit).ask(QUESTION, schema)


def forms(server: ChatServer) -> list[str]:
    return [body.get("response_format", {}).get("type", "text") for body in server.bodies]


# --- response formats


def test_a_schema_is_kept_to_the_letter_where_the_service_can():
    with ChatServer([GOOD]) as server:
        assert json.loads(asked(server, SCHEMA).text) == {"kiln": 3}
    wanted = server.bodies[0]["response_format"]
    assert wanted == {"type": "json_schema", "json_schema": {"name": "distill", "strict": True, "schema": SCHEMA}}


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    ("unknown", "first", "word"),
    [
        pytest.param(("json_schema",), ["json_schema", "json_object"], "without a schema", id="json mode"),
        pytest.param(
            ("json_schema", "json_object"), ["json_schema", "json_object", "text"], "in words alone", id="plain"
        ),
    ],
)
def test_a_service_without_structured_outputs_is_asked_the_next_best_way_and_told_of(status, unknown, first, word):
    ledger = Ledger()
    with ChatServer(without_schemas(lambda _: GOOD, unknown, status)) as server:
        assert json.loads(asked(server, SCHEMA, ledger=ledger).text) == {"kiln": 3}
        asked(server, SCHEMA, ledger=Ledger())
    assert forms(server) == [*first, first[-1]], "what was found out once is not tried again"
    (warning,) = ledger.warnings
    assert "takes no JSON schema" in warning
    assert word in warning


def test_a_later_run_in_the_process_is_told_too():
    ledger = Ledger()
    with ChatServer(without_schemas(lambda _: GOOD)) as server:
        asked(server, SCHEMA)
        asked(server, SCHEMA, ledger=ledger)
    assert len(ledger.warnings) == 1


def test_a_question_that_is_refused_in_every_form_is_refused_for_itself():
    ledger = Ledger()
    with ChatServer(lambda _: error(400, "too long")) as server, pytest.raises(BrokenDocument, match="too long"):
        asked(server, SCHEMA, ledger=ledger)
    assert forms(server) == ["json_schema", "json_object", "text"]
    assert ledger.warnings == ()


def test_once_a_form_has_worked_a_refusal_is_about_the_question():
    replies = [GOOD, error(400, "too long")]
    with ChatServer(replies) as server:
        asked(server, SCHEMA)
        with pytest.raises(BrokenDocument, match="too long"):
            asked(server, SCHEMA)


def test_a_model_that_declines_is_not_asked_in_another_form():
    with ChatServer([said(None, refusal="no")]) as server, pytest.raises(BrokenDocument, match="declines"):
        asked(server, SCHEMA)


def test_prose_is_asked_for_without_a_form():
    with ChatServer([said("kiln 3")]) as server:
        asked(server)
    assert forms(server) == ["text"]


# --- faults


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        pytest.param(busy(9), "rate-limited", id="too many requests"),
        pytest.param(error(503, "down"), "service-failed", id="down"),
        pytest.param(cut(GOOD, 20), "unreachable", id="line cut in the body"),
        pytest.param(cut(GOOD, 0), "unreachable", id="line cut before the body"),
        pytest.param(shortened(GOOD, 40), "bad-reply", id="half a body"),
        pytest.param(Reply(200, b""), "bad-reply", id="no body"),
        pytest.param(Reply(200, b"<html>busy</html>", {"Content-Type": "text/html"}), "bad-reply", id="a page"),
        pytest.param(Reply(200, b"\xff\xfe"), "bad-reply", id="no text"),
        pytest.param(Reply(200, b'{"a":' * 100_000), "bad-reply", id="nested for ever"),
        pytest.param(Reply(200, [1, 2]), "bad-reply", id="a list"),
        pytest.param(Reply(200, {"choices": [{"message": "hello"}]}), "bad-reply", id="a message that is none"),
        pytest.param(said(None), "bad-reply", id="nothing said"),
    ],
)
def test_a_fault_is_tried_again_and_then_told(fault: Reply, reason: str):
    with ChatServer([fault, GOOD]) as server:
        assert json.loads(asked(server, attempts=2).text) == {"kiln": 3}
    with ChatServer([fault]) as server, pytest.raises(TransientError) as caught:
        asked(server)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "reply", [pytest.param(NEVER, id="before it begins"), pytest.param(stalled(GOOD, 20), id="in the middle")]
)
def test_a_service_that_does_not_go_on_is_given_up(reply: Reply):
    with ChatServer([reply]) as server, pytest.raises(TransientError) as caught:
        asked(server, timeout=0.2)
    assert caught.value.reason == "timeout"


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(huge(10_000_000), id="10 MB"),
        pytest.param(
            Reply(200, gzip.compress(huge(30_000_000).raw), {"Content-Encoding": "gzip"}), id="30 MB in some KB"
        ),
    ],
)
def test_a_reply_larger_than_any_useful_one_is_refused_for_good(reply: Reply):
    """A retry would cost as much again."""
    with ChatServer([reply]) as server, pytest.raises(BrokenDocument) as caught:
        asked(server, attempts=4)
    assert caught.value.reason == "bad-reply"
    assert f"{REPLY_BYTES:,} bytes" in caught.value.detail


def test_half_a_surrogate_pair_does_not_come_through():
    body = said("x").raw.replace(b'"x"', b'"a \\ud800 b"')
    with ChatServer([Reply(200, body)]) as server:
        assert asked(server).text == "a ? b"


def test_a_key_is_never_in_an_error():
    with ChatServer([error(401, "invalid key")]) as server:
        settings = LlmSettings(model="m", base_url=server.url, api_key="sk-very-secret", attempts=1)
        model = LanguageModel(settings, "distill")
        with pytest.raises(SettingsError) as caught:
            model.ask(QUESTION)
    chain: list[str] = []
    failed: BaseException | None = caught.value
    while failed is not None:
        chain.append(str(failed))
        failed = failed.__cause__
    assert "sk-very-secret" not in " ".join(chain)


# --- limits


def test_every_try_takes_a_turn_and_the_turn_is_corrected():
    seconds = [0.0]

    def sleep(wait: float) -> None:
        seconds[0] += wait

    rate_limit = ModelRateLimit(2, None, lambda: seconds[0], sleep)
    with ChatServer([busy(), busy(), GOOD]) as server:
        asked(server, attempts=3, rate_limit=rate_limit)
    assert seconds[0] == 60, "the third request had to wait for the first to be a minute old"
    expected = expected_tokens(QUESTION) + ANSWER_TOKENS
    rate_limit = ModelRateLimit(None, expected + 129, lambda: seconds[0], sleep)
    with ChatServer([GOOD, GOOD]) as server:
        asked(server, rate_limit=rate_limit)
        asked(server, rate_limit=rate_limit)
    assert seconds[0] == 60, "129 tokens were used of what was reserved"


def test_images_and_letters_are_estimated():
    image = {"type": "image_url", "image_url": {"url": "data:..."}}
    assert expected_tokens([{"content": [{"type": "text", "text": "a" * 400}, image]}]) == 1100
    assert expected_tokens([{"content": "木" * 400}]) == 300


def test_limits_of_the_settings_hold_for_the_process():
    """Two models of one run share the limits."""
    settings = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "requests_per_minute": 7}
    one, other = (LanguageModel(LlmSettings(**settings), purpose) for purpose in ("distill", "compare"))
    assert one._rate_limit is other._rate_limit
