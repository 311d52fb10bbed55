"""The tools over HTTP, with the official client and both generations of the protocol."""

import json

import pytest
from mcp.shared.exceptions import MCPError

from tests.servers.mcp_client import GENERATIONS, MODES, ask, call, failed, over_http, text_of

TOOLS = ["search_knowledge", "read_document", "list_documents", "search", "fetch"]


@pytest.fixture(params=MODES)
def ada(request, app):
    """Return a function that opens a connection as Ada."""
    return lambda: over_http(app.url, app.plain["ada"], request.param)


def ids(app):
    with app.resources.follower.reader() as reader:
        return {row["path"]: row["document_id"] for row in reader.documents()}


@pytest.mark.parametrize("mode", MODES)
def test_each_generation_of_the_protocol_is_spoken(app, mode):
    async def about(client):
        return client.protocol_version, client.server_info.name, client.instructions

    version, name, instructions = ask(over_http(app.url, app.plain["ada"], mode), about)
    assert (version, name) == (GENERATIONS[mode], "parquetry")
    assert "search_knowledge" in instructions


def test_tools_say_what_they_do_to_the_world(ada):
    tools = {tool.name: tool for tool in ask(ada(), lambda client: client.list_tools()).tools}
    assert list(tools) == [*TOOLS, "remember"]
    for name, tool in tools.items():
        hints = tool.annotations
        assert (hints.read_only_hint, hints.open_world_hint) == (name != "remember", False), name
        assert hints.destructive_hint is False, name
        assert hints.idempotent_hint is (name != "remember"), name
        assert tool.input_schema["type"] == "object"
        assert "$ref" not in json.dumps(tool.input_schema)
        assert (tool.output_schema is None) == (name == "search_knowledge"), name


def test_passages_are_numbered_and_the_next_number_comes_back(ada):
    text = text_of(call(ada(), "search_knowledge", query="How many days of holiday?", top_k=2))
    assert "[1] leave.md" in text
    assert "> Everybody has thirty days of holiday." in text
    assert "first_citation=3" in text
    later = call(ada(), "search_knowledge", query="What does the oak table cost?", top_k=1, first_citation=3)
    assert "[3] oak.txt" in text_of(later)
    assert "first_citation=4" in text_of(later)
    assert later.meta["parquetry/next_citation"] == 4


def test_text_is_the_same_with_sources_which_come_only_when_asked_for(ada):
    asked = {"query": "fan in bay 4", "top_k": 2, "first_citation": 7}
    plain, rich = (
        call(ada(), "search_knowledge", **asked),
        call(ada(), "search_knowledge", **asked, include_sources=True),
    )
    assert plain.structured_content is None
    assert text_of(plain) == text_of(rich)
    found = rich.structured_content
    assert found["next_citation"] == 9
    assert [each["n"] for each in found["results"]] == [7, 8]
    first = found["results"][0]
    assert (first["path"], first["type"], first["headings"]) == ("sub/power.md", "document", ["Power cuts"])
    assert first["snippet"] == "After a power cut the fan in bay 4 runs backwards."


def test_filters_narrow_a_search(ada):
    text = text_of(call(ada(), "search_knowledge", query="holiday", filters={"filename": "*.txt"}))
    assert "oak.txt" in text
    assert "leave.md" not in text


def test_a_search_without_results_says_so(ada):
    result = call(ada(), "search_knowledge", query="holiday", filters={"tags": ["none"]}, include_sources=True)
    assert text_of(result) == "Nothing in the knowledge base matches this. Try other words, or fewer filters."
    assert result.structured_content["results"] == []
    assert result.structured_content["next_citation"] == 1


def test_lines_of_a_passage_are_those_of_the_document(ada):
    text = text_of(call(ada(), "search_knowledge", query="moving house", top_k=1))
    (where,) = [line for line in text.splitlines() if line.startswith("[1]")]
    assert "lines 1-7" in where
    read = call(ada(), "read_document", path="leave.md", from_line=5, lines=3)
    assert read.structured_content["first_line"] == 5
    assert "5| ## Moving\n6|\n7| One more day for moving house." in text_of(read)
    assert read.structured_content["next_line"] is None


def test_a_document_is_read_in_pages_by_id_path_or_name(ada, app):
    first = call(ada(), "read_document", id=ids(app)["sub/power.md"], lines=1)
    assert "1| # Power cuts" in text_of(first)
    assert "from_line=2" in text_of(first)
    rest = call(ada(), "read_document", path="sub/power.md", from_line=2)
    assert "3| After a power cut" in text_of(rest)
    assert "That is the end of the document." in text_of(rest)
    assert "Power cuts" in text_of(call(ada(), "read_document", path="power.md"))
    assert failed(call(ada(), "read_document", path="leave.md", from_line=99)).startswith("leave.md has 7 lines")


def test_documents_are_listed_in_pages(ada):
    first = call(ada(), "list_documents", limit=2)
    assert text_of(first).startswith("3 documents, 1 to 2 of them")
    rest = call(ada(), "list_documents", limit=2, page=first.structured_content["next"])
    paths = [each["path"] for each in (*first.structured_content["documents"], *rest.structured_content["documents"])]
    assert sorted(paths) == ["leave.md", "oak.txt", "sub/power.md"]
    assert rest.structured_content["next"] is None
    some = call(ada(), "list_documents", filename="*.txt").structured_content
    assert [each["path"] for each in some["documents"]] == ["oak.txt"]


def test_search_and_fetch_are_chatgpts(ada, app):
    found = call(ada(), "search", query="How many days of holiday?")
    told = json.loads(text_of(found))
    assert told == found.structured_content
    first = told["results"][0]
    assert first.keys() == {"id", "title", "url"}
    assert (first["id"], first["title"]) == (ids(app)["leave.md"], "Leave")
    fetched = call(ada(), "fetch", id=first["id"])
    document = json.loads(text_of(fetched))
    assert document == fetched.structured_content
    assert document.keys() == {"id", "title", "text", "url", "metadata"}
    assert "thirty days of holiday" in document["text"]
    assert document["url"] == first["url"]


def test_documents_are_resources(ada, app):
    resources = ask(ada(), lambda client: client.list_resources()).resources
    assert {each.name for each in resources} == {"leave.md", "oak.txt", "sub/power.md"}
    oak = next(each for each in resources if each.name == "oak.txt")
    assert oak.uri == f"parquetry://documents/{ids(app)['oak.txt']}"
    (content,) = ask(ada(), lambda client: client.read_resource(oak.uri)).contents
    assert content.text == "The oak table has four legs and costs 640 euros."
    (template,) = ask(ada(), lambda client: client.list_resource_templates()).resource_templates
    assert template.uri_template == "parquetry://documents/{id}"


def test_lists_of_resources_go_on_from_cursor_to_cursor(ada, monkeypatch):
    monkeypatch.setattr("parquetry.serving.mcp.document_resources.PAGE", 2)

    async def all_of_them(client):
        first = await client.list_resources()
        rest = await client.list_resources(cursor=first.next_cursor)
        return first.resources, rest

    first, rest = ask(ada(), all_of_them)
    assert (len(first), len(rest.resources), rest.next_cursor) == (2, 1, None)


def test_prompts_hold_passages_or_the_order_to_search(ada):
    prompts = ask(ada(), lambda client: client.list_prompts()).prompts
    assert [each.name for each in prompts] == ["answer_from_documents", "research"]
    question = {"question": "How many days of holiday?"}
    (message,) = ask(ada(), lambda client: client.get_prompt("answer_from_documents", question)).messages
    assert "> Everybody has thirty days of holiday." in message.content.text
    assert message.content.text.endswith("Question: How many days of holiday?")
    (message,) = ask(ada(), lambda client: client.get_prompt("research", question)).messages
    assert "search_knowledge" in message.content.text
    with pytest.raises(MCPError, match="question"):
        ask(ada(), lambda client: client.get_prompt("research", {}))


@pytest.mark.parametrize(
    ("tool", "given", "line"),
    [
        ("search_knowledge", {}, "query: Field required"),
        ("search_knowledge", {"query": "x", "limit": 3}, "limit: there is no such argument"),
        ("search_knowledge", {"query": "x", "filters": {"tag": "a"}}, "filters.tag: there is no such argument"),
        ("read_document", {}, "arguments: give id or path"),
        ("read_document", {"id": "none"}, "no document 'none'"),
        ("fetch", {"id": "none"}, "no document 'none'"),
        ("list_documents", {"page": "v0-1x"}, "'v0-1x' is no token of a page"),
        ("search_knowledge", {"query": "x", "namespace": "../etc"}, "no namespace '../etc'"),
    ],
)
def test_a_call_that_cannot_be_answered_says_why_in_one_line(ada, tool, given, line):
    async def asked(client):
        return await client.session.call_tool(tool, given)

    assert failed(ask(ada(), asked)).startswith(line)


def test_a_tool_that_does_not_exist_is_an_error_of_the_protocol(ada):
    with pytest.raises(MCPError, match="there is no tool 'rm'") as told:
        call(ada(), "rm")
    assert told.value.code == -32602


def test_calls_are_recorded_and_counted_like_those_of_other_dialects(ada, app):
    def events():
        file = app.resources.state / "audit.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [each for each in map(json.loads, lines) if each["event"] == "knowledge.retrieve"]

    before = len(events())
    call(ada(), "search_knowledge", query="secretive question about holiday", top_k=1)
    assert len(events()) == before + 1
    told = events()[-1]
    assert (told["user_id"], told["namespace"], told["chunks"], told["queries"]) == ("ada", "default", 1, 1)
    assert told["text"] is None
    with app.client(app.plain["root"]) as client:
        page = client.get("/metrics").text
    assert 'parquetry_http_requests_total{method="POST",route="/mcp",status="200"}' in page
