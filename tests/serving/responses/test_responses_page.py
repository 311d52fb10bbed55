"""The Python of the page on responses runs as it stands, one block after the other."""

from __future__ import annotations

from tests.documentation import blocks_of
from tests.servers.model_service import AskedRequest, ModelAnswer, ModelService, call, call_stream, said, text_stream
from tests.serving.chat.conftest import proxy

SEARCHES = call("file_search", queries=["oak table"])
ANSWER = "It costs 640 euros [cite:1]."


def model(asked: AskedRequest) -> ModelAnswer | None:
    """Answer as a model that searches first, and reads what it is told."""
    if asked.path != "/v1/chat/completions":
        return None
    messages, stream = asked.body["messages"], asked.body.get("stream")
    if messages[-1]["role"] == "tool":
        return text_stream(ANSWER) if stream else said(ANSWER)
    if "tools" in asked.body:
        return call_stream(SEARCHES) if stream else said(None, [SEARCHES])
    return said("Ada." if "Ada" in str(messages[0]) and len(messages) > 1 else "Hello.")


def test_python_of_the_page_runs(shelf, capsys):
    blocks = [block.code for block in blocks_of("docs/responses.md") if block.language == "python"]
    with ModelService(rule=model) as service, proxy(shelf, service) as app:
        _, token = app.resources.tokens.create("reader", user_id="ada", rights=("search", "read"))
        names: dict[str, object] = {}
        for code in blocks:
            exec(code.replace("http://127.0.0.1:8000", app.url).replace("pqt_...", token), names)
    told = capsys.readouterr().out
    assert "It costs 640 euros." in told
    assert "oak.txt 18" in told
    assert "It costs 640 euros [oak.txt]." in told
    assert told.endswith("Ada.\n")
