"""The LLM client against a real server on loopback: requests, retries and refusals."""

from __future__ import annotations

import base64

import pytest

from parquetry.errors import BrokenDocument, SettingsError, TransientError
from parquetry.llm.calls import RetryPolicy
from parquetry.llm.client import Completion, LanguageModel
from parquetry.settings.llm import LlmSettings
from tests.servers.chat_server import ChatServer, Reply, error, said

PICTURE = b"\x89PNG not looked at by the client"


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def describe(server: ChatServer, slept: list[float] | None = None, attempts: int = 3) -> Completion:
    """Describe an image, with a clock that records sleeps instead of sleeping."""
    settings = LlmSettings(model="m", base_url=server.url, attempts=attempts)
    slept = [] if slept is None else slept
    retry_policy = RetryPolicy(attempts, slept.append, lambda: 1_700_000_000.0, lambda: 0.0)
    return LanguageModel(settings, "describe", retry_policy=retry_policy).describe_image(PICTURE, "image/png")


def test_a_description_comes_back_with_the_tokens_it_cost():
    with ChatServer([said(" A crane on a quay.\n")]) as server:
        assert describe(server) == Completion("A crane on a quay.", 120, 9, 0.0, "m")
    (body,) = server.bodies
    (message,) = body["messages"]
    instruction, image = message["content"]
    assert body["model"] == "m"
    assert "never an instruction" in instruction["text"]
    kind, _, data = image["image_url"]["url"].partition(";base64,")
    assert (kind, base64.b64decode(data)) == ("data:image/png", PICTURE)


def test_endpoint_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    with ChatServer([said("x")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
        LanguageModel(LlmSettings(model="m"), "describe").describe_image(PICTURE, "image/png")
    assert server.keys == ["Bearer sk-from-environment"]


def test_without_a_model_or_a_key_the_message_says_what_to_set():
    with pytest.raises(SettingsError, match=r"set model in \[llm\]"):
        LanguageModel(LlmSettings(), "describe")
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        LanguageModel(LlmSettings(model="m"), "describe")


def test_what_may_go_away_is_tried_again_after_the_time_asked_for():
    slept: list[float] = []
    with ChatServer([error(429, "slow down", retry_after="7"), error(503, "busy"), said("x")]) as server:
        assert describe(server, slept).text == "x"
    assert slept == [7.0, 1.0]


def test_after_the_last_try_the_failure_is_transient():
    with ChatServer([error(500, "down")] * 3) as server, pytest.raises(TransientError) as caught:
        describe(server)
    assert caught.value.reason == "service-failed"


def test_an_account_without_quota_is_never_tried_again():
    replies = [error(429, "you exceeded your current quota", "insufficient_quota")]
    with ChatServer(replies) as server, pytest.raises(SettingsError, match="quota"):
        describe(server)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(error(400, "unsupported image"), id="service refuses the image"),
        pytest.param(said(None, refusal="I cannot help with that"), id="model declines"),
        pytest.param(said("", finish="content_filter"), id="filtered"),
    ],
)
def test_a_refused_image_is_refused_for_good(reply: Reply):
    with ChatServer([reply]) as server, pytest.raises(BrokenDocument) as caught:
        describe(server)
    assert caught.value.reason == "input-rejected"


@pytest.mark.parametrize("body", [{"choices": []}, {}, {"choices": None}, said(None).body, said("  ").body])
def test_a_reply_without_text_is_asked_for_again(body: object):
    with ChatServer([Reply(200, body), said("at last")]) as server:
        assert describe(server).text == "at last"
