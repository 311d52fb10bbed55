"""Loading an embedder in a thread while a search opens its files: once, and without an error that nobody asked for."""

import threading
from dataclasses import replace

import pytest

from parquetry.embed import registry
from parquetry.errors import SettingsError
from parquetry.settings.embedding import EmbeddingSettings

SETTINGS = EmbeddingSettings()
PREFIXED = SETTINGS.model_copy(update={"query_prefix": "loaded ahead: "})
"""settings of no other test: nobody has loaded this embedder yet"""


@pytest.fixture
def opened(monkeypatch):
    """Return the threads in which an embedder was loaded."""
    threads, provider = [], registry.PROVIDERS["wordllama"]

    def load(model, settings, hub):
        threads.append(threading.current_thread())
        return provider.open(model, settings, hub)

    monkeypatch.setitem(registry.PROVIDERS, "wordllama", replace(provider, open=load))
    return threads


def wait_for_threads():
    for thread in threading.enumerate():
        if thread.name == "embedder":
            thread.join(60)


def test_embedder_that_was_loaded_ahead_is_not_loaded_again(opened):
    registry.load_ahead(["wordllama"], PREFIXED)
    embedder = registry.open_embedder("wordllama", PREFIXED)
    wait_for_threads()
    assert registry.open_embedder("wordllama", PREFIXED) is embedder
    assert len(opened) == 1


def test_loading_ahead_runs_beside_its_caller(opened):
    registry.load_ahead(["wordllama"], PREFIXED.model_copy(update={"query_prefix": "beside: "}))
    wait_for_threads()
    assert [thread.name for thread in opened] == ["embedder"]


@pytest.mark.parametrize("names", [["openai:some"], ["wordllama", "openai:some"], []])
def test_what_may_not_be_needed_or_calls_a_service_is_not_loaded_ahead(opened, names):
    registry.load_ahead(names, PREFIXED)
    assert [each.name for each in threading.enumerate() if each.name == "embedder"] == []
    assert opened == []


def test_error_is_told_to_who_needs_the_embedder(tmp_path, capfd):
    missing = f"onnx:{tmp_path / 'missing'}"
    registry.load_ahead([missing], SETTINGS)
    wait_for_threads()
    assert capfd.readouterr().err == ""
    with pytest.raises(SettingsError, match="missing"):
        registry.open_embedder(missing, SETTINGS)
