"""Texts, keys and names of accounts go to the service that the settings name, and nowhere else."""

import pytest

from parquetry.errors import ServiceRefused
from parquetry.llm.calls import Endpoint, RetryPolicy, open_client, with_retry
from tests.embed.embedding_client import open_on
from tests.servers.embedding_server import EmbeddingServer, Reply, embeddings, scripted
from tests.servers.scripted_service import Scripted, ScriptedService


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_of_an_embedding_service_is_not_followed(status):
    with EmbeddingServer(embeddings) as other:
        away = Reply(status, {}, {"Location": f"{other.url}/embeddings"})
        with (
            EmbeddingServer(scripted([away])) as server,
            pytest.raises(ServiceRefused, match=f"answered {status}, a redirect to http") as told,
        ):
            open_on(server).embed(["a text of the corpus"])
    assert other.requests == []
    assert "set base_url" in str(told.value)


def test_redirect_of_a_language_model_is_not_followed():
    with ScriptedService() as other:
        away = Scripted("POST", "/v1/chat/completions", {}, 307, {"Location": f"{other.url}/v1/chat/completions"})
        with ScriptedService(away) as server, pytest.raises(ServiceRefused, match="redirect to"):
            asked(server)
    assert other.requests == []


def test_names_of_an_account_with_openai_go_to_no_other_service(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-ada")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-ada")
    answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
    with ScriptedService(Scripted("POST", "/v1/chat/completions", answer)) as server:
        asked(server)
    (headers,) = server.headers
    assert "of-ada" not in str(headers)
    official = open_client(Endpoint("https://api.openai.com/v1", "key"), 60)
    assert (official.organization, official.project) == ("org-of-ada", "project-of-ada")


def asked(server):
    where = Endpoint(f"{server.url}/v1", "key")
    client = open_client(where, 60)
    messages = [{"role": "user", "content": "a text of the corpus"}]
    return with_retry(lambda: client.chat.completions.create(model="m", messages=messages), where, RetryPolicy(1))
