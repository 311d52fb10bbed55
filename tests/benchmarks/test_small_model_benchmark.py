"""The small-model benchmark keeps its answers and a person's findings, and reports refusals with their reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import small_model
from tests.servers.chat_server import ChatServer, Reply, said_json

pytestmark = pytest.mark.slow

SAID = "Kiln 3 dries walnut, always."


def entry(text: str) -> dict[str, Any]:
    return {"text": text, "kind": "fact", "level": "individual", "confidence": 0.9, "evidence": ["m1"]}


def answer(_: Any) -> Reply:
    return said_json({"entries": [entry("Walnut is dried in kiln 3."), entry("Call `load_test`."), entry("You too!")]})


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(small_model, "TAKEN", {"chats/*.json": 1})
    folder = tmp_path / "corpora" / "chats"
    folder.mkdir(parents=True)
    for name, length in (("a", 4), ("too-short", 2)):
        messages = [{"role": ("user", "assistant")[place % 2], "content": SAID} for place in range(length)]
        (folder / f"{name}.json").write_text(json.dumps({"messages": messages}))
    return tmp_path / "corpora"


def test_what_is_stored_is_read_once_and_what_is_refused_has_its_reason(corpora: Path, tmp_path: Path):
    with ChatServer(answer) as server:
        options = [
            str(corpora),
            "--url",
            server.url,
            "--answers",
            str(tmp_path / "answers"),
            "--results",
            str(tmp_path),
        ]
        first = small_model.main(options)
        assert [each["statement"] for each in first["stored"]] == ["Walnut is dried in kiln 3."]
        assert first["refused_by_reason"] == {"unsupported": 1, "not-knowledge": 1}
        assert first["leniently"]["refused"] == {"unsupported": 1, "not-knowledge": 1}
        assert first["judged"] == {small_model.UNJUDGED: 1}

        file = tmp_path / "small-model.json"
        result = json.loads(file.read_text())
        result["stored"][0]["judgement"] = "supported: they say so"
        file.write_text(json.dumps(result))
        again = small_model.main(options)
    assert (first["calls"], again["calls"], again["cached"]) == (1, 0, 1)
    assert again["judged"] == {"supported": 1}
    assert again["leniently"]["passed"][0]["judgement"] == "supported: they say so"
