"""Models of the Hugging Face Hub that cannot be had: what is not used, and what is told."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from dataclasses import replace
from typing import Any

import pytest
from huggingface_hub import get_session

from parquetry.embed import hub_client, hub_session
from parquetry.errors import MissingExtra, ServiceRefused, SettingsError, TransientError
from parquetry.settings.hub import HubSettings
from tests.embed.hub_models import MODEL, TOKEN, opened, refusal
from tests.servers.hub_server import Asked, Repository, Sent, as_json, refused

# --- what arrives is checked


def spoiled(how: str):
    def change(asked: Asked, sent: Sent) -> Sent:
        match how:
            case "other bytes":
                return replace(sent, body=bytes(len(sent.body)))
            case "too few":
                return replace(sent, body=sent.body[:-9])
            case "too many":
                return replace(sent, body=sent.body + b"more")
        raise KeyError(how)

    return change


@pytest.mark.parametrize("how", ["other bytes", "too few", "too many"])
def test_a_file_that_is_not_the_one_of_the_list_is_not_used(hub, settings, how) -> None:
    hub.change_stored = spoiled(how)
    error = refusal(settings)
    assert isinstance(error, TransientError)
    assert error.reason == "bad-reply"
    assert "model.onnx" in str(error) or "incomplete" in str(error)
    assert list(settings.folder.rglob("model.onnx")) == []
    assert list(settings.folder.rglob("parquetry-model.json")) == []
    hub.change_stored = lambda _, sent: sent
    opened(settings)
    # What had arrived whole is not fetched again.
    assert hub.fetched.count("config.json") == 1


def broken_off(times: int):
    left = [times]

    def change(asked: Asked, sent: Sent) -> Sent:
        left[0] -= 1
        whole = {"Content-Length": str(len(sent.body))}
        return replace(sent, headers=whole, body=sent.body[:-9]) if left[0] >= 0 else sent

    return change


@pytest.mark.slow
def test_a_transfer_that_breaks_off_is_taken_up_again_and_at_last_given_up(hub, settings) -> None:
    hub.change_stored = broken_off(99)
    error = refusal(settings)
    assert isinstance(error, TransientError)
    assert error.reason == "unreachable"
    hub.change_stored = broken_off(1)
    opened(settings)


def test_a_transfer_that_begins_anew_for_ever_ends() -> None:
    meter = hub_client._meter(hub_client._RemoteFile("model.onnx", 100, "", is_git=False))()
    for more in (90, -90, 90, -90, 90):
        meter.update(more)
    with pytest.raises(TransientError, match="more bytes than the 100 of the hub's list"):
        meter.update(90)


def test_a_small_file_with_other_bytes_is_not_used(hub, settings) -> None:
    def change(asked: Asked, sent: Sent) -> Sent:
        return replace(sent, body=b" " * len(sent.body)) if "/resolve/" in asked.path and sent.body else sent

    hub.change = change
    assert "does not have the checksum" in str(refusal(settings))


@pytest.mark.parametrize("cut", [-1, None], ids=["shorter", "gone"])
def test_a_cached_file_that_has_changed_is_named(hub, settings, cut) -> None:
    opened(settings)
    (file,) = settings.folder.rglob("model.onnx")
    content = file.read_bytes()
    file.unlink()
    if cut is not None:
        file.write_bytes(content[:cut])
    error = refusal(settings)
    assert isinstance(error, SettingsError)
    assert str(error).startswith(f"{file} is not as it was fetched for onnx:{MODEL}; delete {file.parent.parent}")
    shutil.rmtree(file.parent.parent)
    opened(settings)


def test_a_model_over_the_limit_is_not_fetched(hub, settings, model) -> None:
    size = sum(map(len, model.revisions[model.names["main"]].values()))
    small = settings.model_copy(update={"max_bytes": size - 1})
    assert f"has {size:,} bytes, more than max_bytes in [hub]" in str(refusal(small))
    assert hub.fetched == []
    opened(settings.model_copy(update={"max_bytes": size}))


# --- what the hub refuses


NOT_THERE = "has no model acme/none, or it is private: set HF_TOKEN; a folder is written onnx:./acme/none"


def is_private(model: Repository) -> None:
    model.token = TOKEN


def is_gated(model: Repository) -> None:
    model.gated = True


@pytest.mark.parametrize(
    ("spoil", "name", "kind", "message"),
    [
        pytest.param(None, "acme/none", SettingsError, NOT_THERE, id="no model"),
        pytest.param(is_private, MODEL, SettingsError, "or it is private: set HF_TOKEN", id="private"),
        pytest.param(is_gated, MODEL, ServiceRefused, "/acme/tiny, and set HF_TOKEN", id="gated"),
        pytest.param(None, f"{MODEL}@v7", SettingsError, "but not its revision v7", id="no revision"),
    ],
)
def test_a_model_that_is_not_given_out_is_told_in_one_line(hub, settings, model, spoil, name, kind, message) -> None:
    if spoil is not None:
        spoil(model)
    error = refusal(settings, name)
    assert type(error) is kind
    assert message in str(error)
    assert hub.url in str(error)


def test_a_token_that_may_not_read_the_model_is_told(hub, settings, model) -> None:
    model.token = "hf_another"
    error = refusal(settings.model_copy(update={"token": HubSettings(token=TOKEN).token}))
    assert "the token may not read it" in str(error)


def test_a_token_that_is_not_valid_is_told(hub, settings) -> None:
    error = refusal(settings.model_copy(update={"token": HubSettings(token="hf_revoked").token}))
    assert isinstance(error, ServiceRefused)
    assert "check the token, HF_TOKEN" in str(error)


def status(number: int):
    return lambda asked, sent: refused(number, "", "no")


def body(content: bytes):
    return lambda asked, sent: Sent(200, {"Content-Type": "application/json"}, content)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(status(503), "service-failed", id="503"),
        pytest.param(status(429), "rate-limited", id="429"),
        pytest.param(body(b"<html>Sign in"), "bad-reply", id="a page"),
        pytest.param(body(b"[]"), "bad-reply", id="no object"),
        pytest.param(body(b'{"id": "acme/tiny", "sha": "../..", "siblings": []}'), "bad-reply", id="no commit"),
        pytest.param(body(b'{"id": "acme/tiny", "siblings": [{}]}'), "bad-reply", id="no names"),
    ],
)
def test_an_answer_of_no_use_may_be_better_later(hub, settings, change, reason) -> None:
    hub.change = change
    error = refusal(settings)
    assert isinstance(error, TransientError)
    assert error.reason == reason


def test_without_a_network_it_is_told_in_one_line(settings) -> None:
    nobody = settings.model_copy(update={"url": "http://127.0.0.1:9"})
    error = refusal(nobody)
    assert isinstance(error, TransientError)
    assert str(error).startswith(f"unreachable: http://127.0.0.1:9 cannot be reached, so onnx:{MODEL} is not fetched")


def test_without_a_network_a_fetched_model_works(settings) -> None:
    online = opened(settings)
    assert opened(settings.model_copy(update={"url": "http://127.0.0.1:9"})).id == online.id


def test_files_without_a_checksum_are_not_taken(hub, settings, model) -> None:
    def change(asked: Asked, sent: Sent) -> Sent:
        listing = json.loads(sent.body)
        for each in listing["siblings"]:
            each.pop("lfs", None)
            each.pop("blobId")
        return as_json(listing)

    hub.change = change
    assert "has no .onnx file" in str(refusal(settings))


def test_without_the_client_of_the_hub_the_install_line_is_named(settings, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"parquetry\[hub\]"):
        opened(settings)


def test_without_onnxruntime_nothing_is_fetched(hub, settings, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"parquetry\[onnx\]"):
        opened(settings)
    assert hub.asked == []


def test_values_of_a_listing_cannot_leave_the_cache(hub, settings, model, tmp_path) -> None:
    def change(asked: Asked, sent: Sent) -> Sent:
        listing: dict[str, Any] = json.loads(sent.body)
        for each in listing["siblings"]:
            if each["rfilename"] == "onnx/model.onnx":
                each["rfilename"] = "../../../model.onnx"
        return as_json(listing)

    hub.change = change
    assert "has no model.onnx and no onnx/model.onnx; it has ../../../model.onnx" in str(refusal(settings))
    assert hub.fetched == []


@pytest.mark.parametrize("number", [200, 404, 500])
def test_no_more_is_read_of_an_answer_than_it_may_have(hub, settings, number) -> None:
    hub.change = lambda asked, sent: Sent(number, {"Content-Type": "application/json"}, b" " * (17 << 20))
    error = refusal(settings)
    assert isinstance(error, TransientError)
    assert str(error).endswith("/api/models/acme/tiny/revision/main answers with more than 16,777,216 bytes")


def test_no_more_is_read_of_a_file_that_is_refused(hub, settings) -> None:
    hub.change_stored = lambda asked, sent: Sent(404, {}, b" " * (17 << 20)) if asked.method == "GET" else sent
    assert "answers with more than 16,777,216 bytes" in str(refusal(settings))


def test_answers_are_asked_for_unpacked(hub, settings) -> None:
    opened(settings)
    assert {each.encodings for each in (*hub.asked, *hub.storage.asked)} == {"identity"}


def test_an_answer_that_is_packed_is_not_unpacked(hub, settings) -> None:
    packed = gzip.compress(b" " * (1 << 20))
    hub.change = lambda asked, sent: Sent(200, {"Content-Encoding": "gzip"}, packed)
    assert "answers packed" in str(refusal(settings))


def test_an_answer_has_a_time_as_a_whole(hub, settings, monkeypatch) -> None:
    monkeypatch.setattr(hub_session, "_MOST_SILENCES", 0)
    error = refusal(settings)
    assert (type(error), error.reason) == (TransientError, "timeout")


def test_the_programs_own_client_of_the_hub_is_as_before(settings) -> None:
    opened(settings)
    hooks = get_session().event_hooks
    assert not any(hook.__module__.startswith("parquetry") for each in hooks.values() for hook in each)
