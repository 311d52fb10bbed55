"""Requests to models as they arrive at a collector: one span for each, without texts and keys."""

import os
import subprocess

import pytest

from tests.servers import session_model
from tests.servers.chat_server import ChatServer
from tests.servers.embedding_server import EmbeddingServer, embeddings, refusal
from tests.servers.otlp_receiver import OtlpReceiver
from tests.servers.rerank_server import TOKENS, RerankServer
from tests.serving.program import command
from tests.sessions_shelf import Shelf

pytestmark = pytest.mark.slow
KEY = "sk-5f3a90c1d27b4e6f8a12c3d4e5f60718"
TEA = "Tea: I drink green tea in the morning."
QUESTION = "what is drunk"


def requests(receiver, operation):
    """Return the spans of requests of a kind, each with the name of the span above it."""
    names = {span.span_id: span.name for span in receiver.spans}
    found = [span for span in receiver.spans if span.attributes.get("gen_ai.operation.name") == operation]
    assert all((span.name, span.kind) == ("parquetry.model.request", 3) for span in found)
    return [(names.get(span.parent_id), span) for span in found]


def test_every_request_to_a_model_is_a_span_and_no_span_has_a_text_or_a_key(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Ash\n\nAsh is hard.")
    script = [refusal(503, f"busy {KEY}")]
    with (
        OtlpReceiver() as receiver,
        EmbeddingServer(lambda request: script.pop() if script else embeddings(request)) as vectors,
        ChatServer(session_model.answer) as chat,
        RerankServer("jina", [lambda body: [0.5] * len(body["documents"])]) as reranker,
    ):
        Shelf(tmp_path, chat.url).write("a.json", [f"individual/preference: {TEA}"])
        (tmp_path / "parquetry.toml").write_text(f"""
[corpus]
root = "corpus"
embedder = "openai:vectors-1"
[extraction]
workers = 1
[embedding]
base_url = "{vectors.url}"
api_key = "{KEY}"
dimension = 8
[llm]
model = "talks-1"
base_url = "{chat.url}"
[search]
rerank = "service:ranks-1"
[rerank]
base_url = "{reranker.base_url}"
[observability]
otel = true
[[source]]
name = "docs"
uri = "docs"
[[source]]
name = "chats"
uri = "chats"
content = "sessions"
user_id = "ada"
""")

        def run(*arguments):
            told = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
            done = subprocess.run(command(*arguments), cwd=tmp_path, env=told, capture_output=True, text=True)
            assert done.returncode == 0, done

        run("refresh", "--direct")
        embedded = requests(receiver, "embeddings")
        assert [(above, span.error) for above, span in embedded] == [
            ("parquetry.batch.embed", "InternalServerError"),
            ("parquetry.batch.embed", None),
        ]
        assert all(span.attributes["gen_ai.request.model"] == "vectors-1" for _, span in embedded)
        assert embedded[1][1].attributes["gen_ai.usage.input_tokens"] > 0
        run("sessions", "refresh", "--direct")
        asked = requests(receiver, "chat")
        assert len(asked) == len(chat.bodies)
        assert all(above for above, _ in asked), "a request is not below its run"
        assert all(span.attributes["gen_ai.usage.output_tokens"] > 0 for _, span in asked)
        run("search", QUESTION, "--rerank")
        ((_, ranked),) = requests(receiver, "rerank")
        assert (ranked.attributes["gen_ai.request.model"], ranked.error) == ("ranks-1", None)
        assert ranked.attributes["gen_ai.usage.input_tokens"] == TOKENS
        assert len(requests(receiver, "embeddings")) == len(vectors.requests)
    sent = b"".join(receiver.bodies)
    for word in (KEY, "Ash is", "green tea", QUESTION, "busy", vectors.url.removeprefix("http://").split("/")[0]):
        assert word.encode() not in sent, word
