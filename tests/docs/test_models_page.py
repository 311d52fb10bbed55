"""The page on models: its figures are the measured ones, its names are understood, and its limits hold."""

import json
import re
import tomllib

from parquetry.settings.hub import HubSettings, hub_model
from parquetry.settings.sections import parse_settings
from tests.documentation import ROOT, text_of

PAGE = text_of("docs/models.md")
PROSE = " ".join(PAGE.split())


def _measured(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))


def _row(name):
    (row,) = [line for line in PAGE.splitlines() if line.startswith("|") and name in line and "chunks/s" not in line]
    return row


def test_quality_is_the_measured_one():
    bundled = _measured("retrieval")["modes"]["wordllama"]
    larger = _measured("retrieval-minilm")["modes"]["onnx:all-MiniLM-L6-v2"]
    for found, name in ((bundled, "wordllama"), (larger, "all-MiniLM")):
        hybrid, vector = (
            [f"{found[collection][mode]['ndcg']:.3f}" for collection in ("cranfield", "tau2-banking")]
            for mode in ("hybrid", "vector")
        )
        assert f"hybrid {', '.join(hybrid)} |" in _row(name)
        assert re.search(rf"\b{vector[0]} and {vector[1]} with {'the bundled' if name == 'wordllama' else name}", PROSE)


def test_speed_is_the_measured_one():
    median = _measured("embedder-models")["median"]
    for name, shown in (("wordllama", "wordllama"), ("onnx:all-MiniLM-L6-v2", "all-MiniLM")):
        assert f"| {median[name]:,.0f} |" in _row(shown)


def test_settings_of_the_page_name_models_of_the_hub(tmp_path):
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    settings = parse_settings(tomllib.loads(block), "page")
    for name in (settings.corpus.embedder, settings.search.rerank):
        assert hub_model(name.removeprefix("onnx:"), tmp_path) is not None


def test_written_forms_are_understood(tmp_path):
    forms = re.findall(r"^\| `onnx:([^`]+)` \|", PAGE, re.MULTILINE)
    assert len(forms) == 5
    assert all(hub_model(form.replace("<commit>", "0" * 40), tmp_path) is not None for form in forms)


def test_limit_of_the_page_is_the_default():
    assert f"`max_bytes` in `[hub]` ({HubSettings().max_bytes // 1024**3} GiB)" in PROSE
