"""Prompts: versions distinguish them, and the settings may replace them."""

from __future__ import annotations

import json
import re

import pytest

from parquetry.errors import SettingsError
from parquetry.sessions.distill.learn import Proposals
from parquetry.sessions.prompts import load_prompt


@pytest.mark.parametrize("name", ["distill", "compare"])
def test_a_prompt_of_ours_has_a_number_and_a_hash(name):
    prompt = load_prompt(name, None)
    assert re.fullmatch(r"\d+-[0-9a-f]{8}", prompt.version)
    assert not prompt.text.startswith("version")
    assert "data" in prompt.text
    assert "JSON" in prompt.text, "services with a JSON mode demand the word"


def test_the_example_in_the_prompt_is_a_valid_reply():
    """A service without structured outputs has no other guide."""
    text = load_prompt("distill", None).text
    example = text[text.rindex('{"entries": [{') : text.index("]}]}") + 4]
    (entry,) = Proposals.model_validate(json.loads(example)).entries
    assert entry.evidence == ["m4", "m7"]


def test_a_file_replaces_the_prompt_and_its_version_follows_its_text(tmp_path):
    file = tmp_path / "mine.md"
    file.write_text("\ufeffLearn about wood. Reply with JSON.\n", "utf-8")
    first = load_prompt("distill", str(file))
    assert first.text == "Learn about wood. Reply with JSON."
    assert re.fullmatch(r"custom-[0-9a-f]{8}", first.version)
    file.write_text("Learn about stone. Reply with JSON.", "utf-8")
    assert load_prompt("distill", str(file)).version != first.version


def test_a_prompt_for_comparing_one_statement_at_a_time_is_a_mistake_in_the_settings(tmp_path):
    """Replies in its form would all be invalid, and every statement would be kept beside the one that it repeats."""
    file = tmp_path / "mine.md"
    file.write_text('Compare. Reply with JSON: {"verdict": "new", "ordinals": []}', "utf-8")
    with pytest.raises(SettingsError, match="list of `verdicts`") as caught:
        load_prompt("compare", str(file))
    assert "\n" not in str(caught.value)
    file.write_text('Compare. Reply with JSON: {"verdicts": [{"statement": 1, "verdict": "new"}]}', "utf-8")
    assert load_prompt("compare", str(file)).version.startswith("custom-")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(None, "cannot be read", id="missing"),
        pytest.param(b" \n", "is empty", id="empty"),
        pytest.param(b"\xff\xfe\x00", "cannot be read", id="no text"),
    ],
)
def test_a_file_of_no_use_is_a_mistake_in_the_settings(tmp_path, content, told):
    file = tmp_path / "mine.md"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=told) as caught:
        load_prompt("compare", str(file))
    assert "sessions.compare_prompt" in str(caught.value)
    assert "\n" not in str(caught.value)
