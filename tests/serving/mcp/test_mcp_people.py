"""Two people over one service: nothing of one in any answer of the other, and only tools that a caller may use."""

import json

import pytest
from mcp.shared.exceptions import MCPError

from parquetry.model import Access
from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.servers.mcp_client import MODES, ask, call, failed, over_http, text_of
from tests.serving.jobs.desk import Desk
from tests.serving.mcp.conftest import PEOPLE

pytestmark = pytest.mark.slow

SECRETS = {
    "ada": Access("individual", user_id="ada"),
    "acme": Access("organization", org_id="acme"),
    "eve": Access("individual", user_id="eve"),
    "everyone": Access(),
}
"""word of a document -> who may see it"""
SEES = {
    "ada": {"ada", "acme", "everyone"},
    "eve": {"eve", "everyone"},
    "hal": {"acme", "everyone"},
    "hr": set(),
    "root": set(SECRETS),
}
QUESTION = "Which word opens the vault?"


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Run an application over documents of several owners."""
    desk = Desk(tmp_path_factory.mktemp("house"))
    for word, access in SECRETS.items():
        desk.put(f"{word}.md", f"# {word}title\n\nThe {word}word opens the vault.", access=access)
    desk.work()
    root = desk.settings.corpus.root
    desk.close()
    settings = {"corpus": {"root": root}, "serve": {"token_required": True}, "llm": {"model": "m"}}
    with running_app(parse_settings(settings, "test")) as app:
        with app.resources.follower.reader(wait=60) as reader:
            app.ids = {row["filename"].removesuffix(".md"): row["document_id"] for row in reader.documents()}
        app.plain = {name: app.resources.tokens.create(name, **given)[1] for name, given in PEOPLE.items()}
        yield app


def words_in(answer):
    return {word for word in SECRETS if f"{word}word" in answer or f"{word}title" in answer or f"{word}.md" in answer}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SEES)
def test_every_answer_holds_only_what_the_caller_sees(house, name, mode):
    async def everything(client):
        tools = {tool.name for tool in (await client.list_tools()).tools}
        answers = {
            "search_knowledge": await client.call_tool(
                "search_knowledge", {"query": QUESTION, "top_k": 50, "include_sources": True}
            ),
            "search": await client.call_tool("search", {"query": QUESTION}),
            "prompt": await client.get_prompt("answer_from_documents", {"question": QUESTION}),
        }
        if "list_documents" in tools:
            answers["list_documents"] = await client.call_tool("list_documents", {"limit": 1000})
            answers["resources"] = await client.list_resources()
        return answers

    for what, answer in ask(over_http(house.url, house.plain[name], mode), everything).items():
        assert words_in(answer.model_dump_json()) == SEES[name], what


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["ada", "eve", "hr"])
def test_a_guessed_id_or_path_of_another_is_as_one_that_does_not_exist(house, name, mode):
    async def guesses(client, document, path):
        return [
            await client.call_tool("read_document", {"id": document}),
            await client.call_tool("read_document", {"path": path}),
            await client.call_tool("fetch", {"id": document}),
        ]

    for word, document in house.ids.items():
        path = f"~{word}/{word}.md"
        answers = ask(over_http(house.url, house.plain[name], mode), lambda client: guesses(client, document, path))  # noqa: B023
        uri = f"parquetry://documents/{document}"
        if word in SEES[name]:
            assert f"{word}word" in text_of(answers[0])
            assert f"{word}word" in text_of(answers[2])
            continue
        assert [failed(each) for each in answers] == [f"no document {each!r}" for each in (document, path, document)]
        with pytest.raises(MCPError, match=f"no document '{document}'") as told:
            ask(over_http(house.url, house.plain[name], mode), lambda client: client.read_resource(uri))  # noqa: B023
        assert told.value.code == -32602


@pytest.mark.parametrize("mode", MODES)
def test_filters_and_namespaces_lead_to_nothing_of_others(house, mode):
    hr = house.plain["hr"]
    assert failed(call(over_http(house.url, hr, mode), "search_knowledge", query=QUESTION, namespace="default")) == (
        "no namespace 'default'"
    )
    assert failed(call(over_http(house.url, hr, mode, X_Parquetry_Namespace="default"), "list_documents")) == (
        "no namespace 'default'"
    )
    eve = over_http(house.url, house.plain["eve"], mode)
    told = call(eve, "search_knowledge", query=QUESTION, filters={"user_id": "ada"}, include_sources=True)
    assert words_in(told.model_dump_json()) == set()


@pytest.mark.parametrize("mode", MODES)
def test_tools_beyond_the_rights_of_a_caller_do_not_exist(house, mode):
    names = ask(over_http(house.url, house.plain["hal"], mode), lambda client: client.list_tools()).tools
    assert [tool.name for tool in names] == ["search_knowledge", "search"]
    for tool, given in (("fetch", {"id": house.ids["acme"]}), ("remember", {"text": "x"}), ("list_documents", {})):
        with pytest.raises(MCPError, match=f"there is no tool '{tool}'"):
            call(over_http(house.url, house.plain["hal"], mode), tool, **given)
    hal = house.plain["hal"]
    assert ask(over_http(house.url, hal, mode), lambda client: client.list_resources()).resources == []
    uri = f"parquetry://documents/{house.ids['acme']}"
    with pytest.raises(MCPError, match="right 'read'"):
        ask(over_http(house.url, hal, mode), lambda client: client.read_resource(uri))
    lines = (house.resources.state / "audit.jsonl").read_text().splitlines()
    refused = [each for each in map(json.loads, lines) if each["event"] == "access.refused"]
    assert any("tool fetch" in each["target"] and each["user_id"] == "hal" for each in refused)


def test_without_a_token_nothing_is_answered(house):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with house.client() as client:
        response = client.post("/mcp", json=message, headers={"Accept": "application/json, text/event-stream"})
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"


def test_a_token_without_search_is_refused_at_the_door(house):
    _, plain = house.resources.tokens.create("reader", rights=["read"])
    with house.client(plain) as client:
        assert client.post("/mcp", json={}).status_code == 403


def test_there_are_no_sessions_to_get_or_delete(house):
    with house.client(house.plain["ada"]) as client:
        assert client.get("/mcp").status_code == 405
        assert client.delete("/mcp").status_code == 405


def test_a_revoked_token_ends_with_the_next_message(house):
    token, plain = house.resources.tokens.create("soon gone", **PEOPLE["ada"])

    async def twice(client):
        first = await client.call_tool("search", {"query": QUESTION})
        house.resources.tokens.revoke(token.id)
        return first, await client.call_tool("search", {"query": QUESTION})

    with pytest.raises(MCPError):
        ask(over_http(house.url, plain), twice)
