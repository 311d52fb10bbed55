"""Names of models: folders and models of the hub are told apart, from the file that names them on."""

from pathlib import Path

import pytest

from parquetry.errors import SettingsError
from parquetry.settings.hub import HubModel, HubSettings, hub_model, is_commit, model_name
from parquetry.settings.sections import load_settings

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("acme/tiny", HubModel("acme/tiny", None, None)),
        ("hf://acme/tiny", HubModel("acme/tiny", None, None)),
        ("acme/tiny@v1.0", HubModel("acme/tiny", "v1.0", None)),
        (f"acme/all-MiniLM-L6-v2@{COMMIT}", HubModel("acme/all-MiniLM-L6-v2", COMMIT, None)),
        ("acme/tiny/onnx/model_O2.onnx", HubModel("acme/tiny", None, "onnx/model_O2.onnx")),
        ("hf://acme/tiny@v1/model.onnx", HubModel("acme/tiny", "v1", "model.onnx")),
        ("./acme/tiny", None),
        ("../acme/tiny", None),
        ("/acme/tiny", None),
        ("~/tiny", None),
        ("tiny", None),
        ("models/tiny", None),
        ("acme/tiny.onnx", None),
        ("acme/tiny/onnx", None),
        ("acme/tiny@", None),
        ("acme/tiny@../x", None),
        ("acme/tiny/../model.onnx", None),
        ("acme/ti ny", None),
        ("acme/..", None),
        ("C:/tiny", None),
        (r"acme\tiny", None),
    ],
)
def test_names_of_the_hub_and_of_folders(name, found, tmp_path):
    assert hub_model(name, tmp_path) == found
    if found is not None:
        assert str(found) == name.removeprefix("hf://")
        assert hub_model(found.address, tmp_path) == found


@pytest.mark.parametrize("there", ["acme/tiny", "acme"])
def test_a_folder_that_is_there_is_a_folder(tmp_path, there):
    """A misspelt name below a folder of models is not sent to the hub."""
    (tmp_path / there).mkdir(parents=True)
    assert hub_model("acme/tiny", tmp_path) is None
    assert hub_model("hf://acme/tiny", tmp_path) == HubModel("acme/tiny", None, None)


@pytest.mark.parametrize("name", ["hf://", "hf://tiny", "hf://acme/tiny/config.json", "hf://acme/../x"])
def test_an_address_that_names_no_model_is_told(name):
    with pytest.raises(SettingsError, match="is no model of the hub; write onnx:owner/name"):
        hub_model(name)


def test_only_whole_commits_are_pinned_by_themselves():
    assert is_commit(COMMIT)
    assert not any(map(is_commit, ("main", COMMIT[:-1], COMMIT.upper(), COMMIT + "0")))


def test_names_are_settled_beside_the_file_that_has_them(tmp_path, monkeypatch):
    """Folders of the working folder have no influence later."""
    (tmp_path / "models" / "e5").mkdir(parents=True)
    (tmp_path / "parquetry.toml").write_text(
        '[corpus]\nembedder = "onnx:models/e5"\n[search]\nrerank = "onnx:acme/cross@v1"\n[hub]\ncache = "cached"\n'
        '[[namespace]]\nname = "other"\nembedder = "onnx:acme/tiny"\n'
    )
    settings = load_settings(tmp_path / "parquetry.toml")
    (tmp_path / "acme").mkdir()
    monkeypatch.chdir(tmp_path)
    assert settings.corpus.embedder == f"onnx:{tmp_path / 'models' / 'e5'}"
    assert settings.search.rerank == "onnx:hf://acme/cross@v1"
    assert settings.namespace[0].embedder == "onnx:hf://acme/tiny"
    assert settings.hub.folder == tmp_path / "cached"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("onnx:hf://acme/tiny@v1", "onnx:acme/tiny@v1"),
        ("onnx:/srv/models/e5/", "onnx:e5"),
        ("openai:text-embedding-3-small", "openai:text-embedding-3-small"),
        ("llm", "llm"),
    ],
)
def test_a_service_shows_a_model_without_its_place(name, shown):
    assert model_name(name) == shown


def test_the_cache_is_the_users_unless_it_is_set(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert HubSettings().folder == tmp_path / "parquetry" / "models"
    assert HubSettings(cache="models").folder == Path("models")


def test_address_and_token_come_from_the_environment_unless_they_are_set(monkeypatch):
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    assert HubSettings().address == "https://huggingface.co"
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.intern/")
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_environment")
    assert (HubSettings().address, HubSettings().key) == ("http://mirror.intern", "hf_of_the_environment")
    own = HubSettings(url="http://hub.intern/", token="hf_of_the_file")
    assert (own.address, own.key) == ("http://hub.intern", "hf_of_the_file")
    monkeypatch.setenv("HF_ENDPOINT", "mirror.intern")
    with pytest.raises(SettingsError, match="HF_ENDPOINT must be an address such as"):
        _ = HubSettings().address


@pytest.mark.parametrize(("value", "offline"), [("1", True), ("yes", True), ("TRUE", True), ("0", False), ("", False)])
def test_offline_by_the_variable(value, offline, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    assert (HubSettings().offline_by is not None) == offline
    assert HubSettings(offline=True).offline_by == "offline in [hub]"
