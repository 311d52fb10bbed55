"""Models of the Hugging Face Hub: what is fetched, and what pins it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from parquetry.embed import registry
from parquetry.embed.onnx import OnnxEmbedder, embedder_id
from parquetry.errors import SettingsError, TransientError
from parquetry.rerank.onnx import CrossEncoder
from parquetry.settings.hub import HubSettings
from tests.embed.hub_models import DESCRIBED, MODEL, SETTINGS, TOKEN, opened, refusal
from tests.embed.tiny_onnx import build_folder
from tests.rerank import tiny_cross_encoder
from tests.servers.hub_server import Repository

# --- what is fetched


def test_a_model_is_fetched_once_and_is_the_same_as_in_a_folder(hub, settings, folder) -> None:
    embedder = opened(settings)
    assert embedder.id == OnnxEmbedder(folder, SETTINGS).id
    np.testing.assert_array_equal(
        embedder.embed(["red cat"]).vectors, OnnxEmbedder(folder, SETTINGS).embed(["red cat"]).vectors
    )
    asked = len(hub.asked)
    assert opened(settings).id == embedder_id(MODEL, SETTINGS, settings) == embedder.id
    assert len(hub.asked) == asked


def test_only_what_the_model_needs_is_fetched_and_no_code(hub, settings, model, tmp_path) -> None:
    """Code, pickles, other exports and weights of other programs stay on the hub."""
    (commit,) = model.revisions
    needed = dict(model.revisions[commit])
    for path in (
        "modeling_tiny.py", "pytorch_model.bin", "model.safetensors", "README.md", "onnx/model_O2.onnx",
        "onnx/model.onnx_data/../../../out.json", "onnx/model.onnx_data/more", "../config.json", "a/b/config.json",
    ):  # fmt: skip
        model.revisions[commit][path] = b"import os"
    opened(settings)
    assert sorted(hub.fetched) == sorted(needed)
    here = {
        file.relative_to(tmp_path / "cache").as_posix() for file in (tmp_path / "cache").rglob("*") if file.is_file()
    }
    own = {f"{commit}/parquetry-model.json", "lock", "revisions/main"}
    assert here == {f"acme--tiny/{each}" for each in {f"{commit}/{path}" for path in needed} | own}


def test_weights_apart_from_their_model_are_fetched_with_it(hub, settings, model, folder) -> None:
    whole = OnnxEmbedder(folder, SETTINGS).embed(["red cat"]).vectors
    place = Path(folder) / "onnx" / "model.onnx"
    onnx.save(onnx.load(place), place, save_as_external_data=True, location="model.onnx_data", size_threshold=0)
    model.publish(folder)
    np.testing.assert_array_equal(opened(settings).embed(["red cat"]).vectors, whole)
    assert "onnx/model.onnx_data" in hub.fetched


def test_token_goes_to_the_hub_alone(hub, settings, model, monkeypatch) -> None:
    """Large files are on servers of others."""
    model.token = TOKEN
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    opened(settings)
    assert {each.token for each in hub.asked} == {f"Bearer {TOKEN}"}
    assert [each.token for each in hub.storage.asked] == [None]
    assert TOKEN not in "".join(
        file.read_text("utf-8", "ignore") for file in settings.folder.rglob("*") if file.is_file()
    )


def test_no_token_is_sent_unless_one_is_set(hub, settings, tmp_path, monkeypatch) -> None:
    """The one that `hf auth login` has stored is for programs that know of it."""
    from huggingface_hub import constants

    (tmp_path / "token").write_text(TOKEN)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    opened(settings)
    assert {each.token for each in hub.asked} == {None}


def test_the_hub_learns_nothing_about_the_machine_beyond_versions(hub, settings, tmp_path, monkeypatch) -> None:
    """Its client asks the hub which programs may have started it, unless its telemetry is off."""
    from huggingface_hub import constants
    from huggingface_hub.utils import _detect_agent

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", False)
    monkeypatch.setattr(constants, "AGENT_HARNESSES_PATH", str(tmp_path / "harnesses"))
    monkeypatch.setattr(_detect_agent, "_registry", None)
    before = dict(vars(constants))
    opened(settings)
    assert all(each.agent.startswith("parquetry/") and "agent/" not in each.agent for each in hub.asked)
    assert _detect_agent._registry is None
    assert dict(vars(constants)) == before


def test_models_in_the_users_cache_are_the_users_alone(hub, settings, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    opened(settings.model_copy(update={"cache": None}))
    opened(settings)
    assert (tmp_path / "user" / "parquetry" / "models" / "acme--tiny").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "cache" / "acme--tiny").stat().st_mode & 0o777 != 0o700


# --- revisions


def test_a_revision_that_moves_on_the_hub_does_not_move_here(hub, settings, model, folder, tmp_path) -> None:
    first, old = opened(settings).id, model.names["main"]
    build_folder(Path(folder), seed=1, place="onnx/model.onnx", files=DESCRIBED)
    new = model.publish(folder)
    assert opened(settings).id == first
    assert opened(settings, f"{MODEL}@{new}").id == OnnxEmbedder(folder, SETTINGS).id != first
    assert opened(settings).id == first
    elsewhere = settings.model_copy(update={"cache": str(tmp_path / "elsewhere")})
    assert opened(elsewhere).id != first
    assert opened(elsewhere, f"{MODEL}@{old}").id == first


def test_a_revision_that_changes_nothing_in_the_vectors_needs_no_new_ones(settings, model, folder) -> None:
    first = opened(settings).id
    (Path(folder) / "README.md").write_text("Better explained.")
    assert opened(settings, f"{MODEL}@{model.publish(folder)}").id == first


def test_tags_and_branches_are_pinned_each(hub, settings, model, folder) -> None:
    build_folder(Path(folder), seed=1, place="onnx/model.onnx", files=DESCRIBED)
    tagged = model.publish(folder, "v2.0")
    assert opened(settings, f"{MODEL}@v2.0").id == opened(settings, f"{MODEL}@{tagged}").id != opened(settings).id


def test_a_commit_that_is_answered_with_another_is_refused(hub, settings, model) -> None:
    asked, other = "0" * 40, model.names["main"]
    model.names[asked] = other
    error = refusal(settings, f"{MODEL}@{asked}")
    assert isinstance(error, TransientError)
    assert other in str(error)


# --- one of several files


def test_one_of_several_exports_is_named_by_its_path(hub, settings, model, folder) -> None:
    build_folder(Path(folder), seed=1, place="onnx/model_O2.onnx", files=DESCRIBED)
    model.publish(folder)
    usual = opened(settings).id
    other = opened(settings, f"{MODEL}/onnx/model_O2.onnx").id
    asked = len(hub.asked)
    assert opened(settings).id == usual != other == opened(settings, f"{MODEL}/onnx/model_O2.onnx").id
    assert len(hub.asked) == asked
    assert hub.fetched.count("tokenizer.json") == 1


@pytest.mark.parametrize(
    ("paths", "name", "message"),
    [
        pytest.param(
            ["onnx/a.onnx", "onnx/b.onnx"], MODEL, "onnx/a.onnx, onnx/b.onnx: name one, as onnx:acme/tiny/onnx/a"
        ),
        pytest.param(["model.onnx"], f"{MODEL}@main/onnx/q.onnx", "has no onnx/q.onnx; it has model.onnx: name one"),
        pytest.param([], MODEL, "has no .onnx file; choose a model that is exported to ONNX"),
    ],
    ids=["none is usual", "no such file", "no export"],
)
def test_without_a_file_to_take_the_choice_is_told(hub, settings, model, paths, name, message) -> None:
    files = model.revisions[model.names["main"]]
    content = files.pop("onnx/model.onnx")
    files.update(dict.fromkeys(paths, content))
    error = refusal(settings, name)
    assert isinstance(error, SettingsError)
    assert message in str(error)
    assert hub.fetched == []


def test_a_model_without_its_fast_tokenizer_is_not_fetched(hub, settings, model) -> None:
    del model.revisions[model.names["main"]]["tokenizer.json"]
    assert "has no tokenizer.json" in str(refusal(settings))
    assert hub.fetched == []


# --- offline


@pytest.mark.parametrize("switch", ["setting", "variable"])
def test_offline_the_cache_serves_and_the_hub_is_not_asked(hub, settings, model, monkeypatch, switch) -> None:
    online, commit = opened(settings), model.names["main"]
    asked = len(hub.asked)
    if switch == "variable":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    else:
        settings = settings.model_copy(update={"offline": True})
    assert opened(settings).id == opened(settings, f"{MODEL}@{commit}").id == online.id
    error = refusal(settings, f"{MODEL}@v9")
    assert isinstance(error, SettingsError)
    assert str(error).startswith(f"the model onnx:{MODEL}@v9 is not in {settings.folder}, and the hub is not asked (")
    assert ("HF_HUB_OFFLINE" if switch == "variable" else "offline in [hub]") in str(error)
    assert len(hub.asked) == asked


def test_a_cache_that_was_copied_serves_elsewhere(hub, settings, tmp_path) -> None:
    online = opened(settings)
    shutil.copytree(settings.folder, tmp_path / "copied")
    offline = HubSettings(cache=str(tmp_path / "copied"), offline=True)
    assert opened(offline).id == online.id
    (place,) = (tmp_path / "copied" / "acme--tiny").glob("*/parquetry-model.json")
    assert OnnxEmbedder(str(place.parent), SETTINGS).id == online.id


def test_callers_without_settings_of_the_hub_never_ask_it() -> None:
    with pytest.raises(SettingsError, match="the hub is not asked"):
        registry.open_embedder(f"onnx:{MODEL}", SETTINGS)


# --- cross-encoders, and loading ahead


def test_a_cross_encoder_of_the_hub_scores_like_its_folder(hub, settings, tmp_path) -> None:
    folder = tiny_cross_encoder.build_folder(tmp_path / "cross")
    hub.models["acme/cross"] = Repository()
    commit = hub.models["acme/cross"].publish(folder)
    found = CrossEncoder("acme/cross", settings)
    assert found.id == f"onnx:acme/cross@{commit}"
    texts = ["walnut kiln", "lunch menu"]
    np.testing.assert_array_equal(
        found.judge("walnut", texts).scores, CrossEncoder(folder).judge("walnut", texts).scores
    )


def test_loading_ahead_does_not_fetch(hub, settings, monkeypatch) -> None:
    """The search itself fetches the model, and shows the error if it cannot be had: once, not twice."""
    from tests.embed.test_load_ahead import wait_for_threads

    registry.load_ahead([f"onnx:{MODEL}"], SETTINGS, settings)
    wait_for_threads()
    assert hub.asked == []
    opened(settings)
    registry.load_ahead([f"onnx:{MODEL}"], SETTINGS, settings)
    wait_for_threads()
    assert any(key[0] == f"onnx:{MODEL}" and key[2] == settings for key in registry._open)
