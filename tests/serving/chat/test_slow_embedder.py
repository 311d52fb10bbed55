"""Chats whose questions a service embeds wait for that service, and not for each other."""

import threading
from concurrent.futures import ThreadPoolExecutor

from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.settings.sections import parse_settings
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.embedding_server import EmbeddingServer, embeddings
from tests.servers.http_app import running_app
from tests.servers.model_service import ModelService, said
from tests.workshop import Workshop

TOGETHER = 6
"""questions that the service answers once it has all of them"""


def test_chats_wait_for_a_service_that_embeds_side_by_side(tmp_path):
    together = threading.Barrier(TOGETHER)

    def embedded(request):
        if request.inputs[0].startswith("Which"):
            together.wait(120)
        return embeddings(request)

    workshop = Workshop(tmp_path)
    workshop.write("oak.md", "# Oak\n\nThe oak table has four legs.\n")
    with EmbeddingServer(embedded) as embedder, ModelService(rule=lambda _: said("Four.")) as service:
        sections = {
            "corpus": {"root": str(tmp_path / "corpus"), "embedder": "openai:m"},
            "embedding": {"base_url": embedder.url, "api_key": "x", "attempts": 1, "dimension": 8},
            "extraction": {"workers": 1},
            "source": [{"name": "docs", "uri": str(workshop.folder)}],
            "upstream": {"base_url": service.base_url},
            "serve": {"state": str(tmp_path / "state")},
        }
        settings = parse_settings(sections, "test")
        run_refresh(Request(settings), DirectEngine(), Observer())
        with running_app(settings) as app, app.client() as client, ThreadPoolExecutor(TOGETHER) as threads:

            def ask(number):
                messages = [{"role": "user", "content": f"Which legs has table {number}?"}]
                return client.post("/v1/chat/completions", json={"model": "m", "messages": messages})

            answers = list(threads.map(ask, range(TOGETHER)))
    assert [each.status_code for each in answers] == [200] * TOGETHER, [each.text for each in answers]
    assert all(each.json()["rag_sources"] for each in answers)
