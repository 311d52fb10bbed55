"""Two people over one service of two workers: nothing of one in any answer of the other, also after a restart.

The model repeats everything that it reads, and searches for the words of both.
"""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import openai
import pytest

from parquetry.serving.access.tokens import TokenStore
from parquetry.serving.state.folder import state_folder
from parquetry.settings.sections import parse_settings
from tests.servers.knowledge_service import KnowledgeService
from tests.servers.mcp_client import call as call_tool
from tests.servers.mcp_client import over_http
from tests.servers.model_service import ModelService, call, call_stream, said, text_stream
from tests.servers.worker_clients import one_client_of_each_worker
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("two-people")]
RIGHTS = ["search", "read", "write"]
PEOPLE = {"ada": "acme", "eve": "other"}
QUESTIONS = ["Which word opens the vault of ada?", "Which word opens the vault of eve?"]
LARGE = 2_500_000
"""bytes of a large file, and of a large question"""


def repeating(asked):
    """Search for the words of both people, then say all that was read."""
    last, stream = asked.body["messages"][-1], asked.body.get("stream")
    names = {each["function"]["name"] for each in asked.body.get("tools") or ()}
    if last["role"] != "tool" and names:
        if "file_search" in names:
            calls = [call("file_search", queries=QUESTIONS)]
        else:
            calls = [call("search_knowledge", f"c{place}", query=each) for place, each in enumerate(QUESTIONS)]
            calls += [call("read_full_document", f"r{name}", path=f"{name}.md") for name in PEOPLE]
        return call_stream(*calls) if stream else said(None, calls)
    text = json.dumps(asked.body["messages"])
    return text_stream(text) if stream else said(text)


def words_in(answer):
    return {name for name in PEOPLE if f"{name}word" in answer}


@pytest.fixture
def place(tmp_path):
    """Return a folder with settings and a document, and a token of each person."""
    workshop = Workshop(tmp_path)
    workshop.write("leave.md", "# Leave\n\nEverybody has thirty days of holiday.\n")
    workshop.refresh()
    (tmp_path / "parquetry.toml").write_text('[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n')
    settings = parse_settings({"corpus": {"root": str(tmp_path / "corpus")}}, "test")
    with TokenStore(state_folder(settings)) as tokens:
        made = {
            name: tokens.create(name, user_id=name, org_id=organization, rights=RIGHTS)[1]
            for name, organization in PEOPLE.items()
        }
    return tmp_path, made


def kept(client, name):
    """Keep a document of a person in a store; return the ids of file and store."""
    text = f"# Vault\n\nThe {name}word opens the vault of {name}.\n".encode()
    file = client.files.create(file=(f"{name}.md", text), purpose="assistants").id
    store = client.vector_stores.create(name="vault", file_ids=[file]).id
    attached = client.vector_stores.files.poll(file, vector_store_id=store, poll_interval_ms=100)
    assert attached.status == "completed"
    return file, store


def large(client, name):
    """Upload a large file and ask a large question; return what comes back."""
    text = f"{name}word ".encode() * (LARGE // 8)
    file = client.files.create(file=("large.txt", text), purpose="user_data").id
    assert client.files.content(file).read() == text
    messages = [{"role": "user", "content": f"{name}word " * (LARGE // 8)}]
    extra = {"rag_top_k": 0, "rag_enable_tools": False}
    return client.chat.completions.create(model="m", messages=messages, extra_body=extra).choices[0].message.content


def check_person(client, service, token, name, owned, responses):
    """Ask for everything by one client; only the words of its person come."""
    (file, store), (other_file, other_store) = owned[name], next(owned[each] for each in PEOPLE if each != name)
    found = client.vector_stores.search(store, query=QUESTIONS)
    assert words_in(found.to_json()) == {name}
    assert [each.id for each in client.vector_stores.list() if each.name == "vault"] == [store]
    assert words_in(client.files.content(file).read().decode()) == {name}
    for hidden in (
        lambda: client.vector_stores.search(other_store, query="vault"),
        lambda: client.files.content(other_file),
        lambda: client.vector_stores.files.create(store, file_id=other_file),
    ):
        with pytest.raises(openai.NotFoundError):
            hidden()
    asked = {"model": "m", "messages": [{"role": "user", "content": "Which words open the vaults?"}]}
    whole = client.chat.completions.create(**asked)
    assert words_in(whole.to_json()) == {name}
    told = "".join(each.to_json() for each in client.chat.completions.create(**asked, stream=True))
    assert words_in(told.replace('",\n', "")) <= {name}
    tool = {"type": "file_search", "vector_store_ids": [store]}
    response = client.responses.create(
        model="m", input="Which words?", tools=[tool], include=["file_search_call.results"]
    )
    assert words_in(response.to_json()) == {name}
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="m", input="x", tools=[{**tool, "vector_store_ids": [store, other_store]}])
    for owner, response_id in responses.items():
        if owner == name:
            assert words_in(client.responses.retrieve(response_id).to_json()) == {name}
            continue
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(response_id)
        with pytest.raises(openai.BadRequestError):
            client.responses.create(model="m", input="x", previous_response_id=response_id)
    asked_all = {"query": " ".join(QUESTIONS), "top_k": 50, "include_sources": True}
    found = call_tool(over_http(service.url, token), "search_knowledge", **asked_all)
    assert words_in(found.model_dump_json()) == {name}
    listed = call_tool(over_http(service.url, token), "list_documents", limit=1000).structured_content
    # The public one, and the person's own.
    assert listed["total"] == len(listed["documents"]) == 2
    return response.id


@contextmanager
def clients_of(service, tokens):
    """Yield clients of each worker for each person."""
    with ExitStack() as clients:
        yield {name: clients.enter_context(one_client_of_each_worker(service, token)) for name, token in tokens.items()}


def check_everybody(service, tokens, clients, owned, responses):
    """Check each person on each worker, both people at a time."""
    for worker in range(2):
        with ThreadPoolExecutor(2) as pool:
            asked = {
                name: pool.submit(check_person, clients[name][worker], service, tokens[name], name, owned, responses)
                for name in PEOPLE
            }
            made = {name: each.result(120) for name, each in asked.items()}
        responses.update(made)
    with ThreadPoolExecutor(4) as pool:
        sent = [(name, pool.submit(large, client, name)) for name in PEOPLE for client in clients[name]]
        for name, each in sent:
            assert words_in(each.result(120)) == {name}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_nothing_of_one_reaches_the_other_on_any_worker_or_after_a_restart(place, how):
    folder, tokens = place
    with ModelService(rule=repeating) as model:
        options = ("--workers", "2", "--token-required", "--upstream", model.base_url)
        with KnowledgeService(folder, *options) as service:
            service.wait_ready()
            responses = {}
            with clients_of(service, tokens) as clients:
                owned = {name: kept(clients[name][0], name) for name in PEOPLE}
                check_everybody(service, tokens, clients, owned, responses)
            service.stop(how)
        with KnowledgeService(folder, *options) as service:
            service.wait_ready()
            with clients_of(service, tokens) as clients:
                check_everybody(service, tokens, clients, owned, responses)
        assert all(token.encode() not in asked.everything for asked in model.requests for token in tokens.values())
