"""`parquetry mcp` as a client starts it: a real process on standard streams, for a corpus and for a service."""

import json
import os
import subprocess
import sys

import pytest
from mcp.shared.exceptions import MCPError

from tests.servers import session_model
from tests.servers.chat_server import ChatServer
from tests.servers.mcp_client import GENERATIONS, MODES, ask, call, failed, over_http, over_streams, text_of
from tests.serving.mcp.conftest import TEXTS
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("mcp-streams")]
READS = ["search_knowledge", "read_document", "list_documents", "search", "fetch"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("streams"))
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    return workshop


@pytest.mark.parametrize("mode", MODES)
def test_a_corpus_is_served_in_each_generation_of_the_protocol(shop, mode):
    async def all_of_it(client):
        names = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search_knowledge", {"query": "How many days of holiday?", "top_k": 1})
        resources = await client.list_resources()
        content = await client.read_resource(resources.resources[0].uri)
        prompt = await client.get_prompt("answer_from_documents", {"question": "holiday"})
        return client.protocol_version, names, found, resources, content, prompt

    version, names, found, resources, content, prompt = ask(over_streams(shop.root, mode=mode), all_of_it)
    assert version == GENERATIONS[mode]
    assert names == READS
    assert "> Everybody has thirty days of holiday." in text_of(found)
    assert len(resources.resources) == 3
    assert content.contents[0].text
    assert "holiday" in prompt.messages[0].content.text


def test_what_is_published_meanwhile_is_found(shop, tmp_path):
    workshop = Workshop(tmp_path)
    workshop.write("oak.md", "The oak table has four legs.")
    workshop.refresh()

    async def before_and_after(client):
        first = await client.call_tool("list_documents", {})
        workshop.write("elm.md", "The elm stool is blue.")
        version = workshop.refresh().version
        while (later := await client.call_tool("list_documents", {})).structured_content["version"] < version:
            pass
        return first, later

    first, later = ask(over_streams(tmp_path), before_and_after)
    assert first.structured_content["total"] == 1
    assert later.structured_content["total"] == 2


def test_a_corpus_that_goes_away_is_an_error_and_not_nothing(tmp_path):
    workshop = Workshop(tmp_path)
    workshop.write("oak.md", "The oak table has four legs.")
    workshop.refresh()

    async def after_it_went(client):
        text_of(await client.call_tool("list_documents", {}))
        (tmp_path / "corpus").rename(tmp_path / "elsewhere")
        answers = []
        while not answers or not answers[-1].is_error:
            answers.append(await client.call_tool("read_document", {"path": "oak.md"}))
        return answers[-1]

    assert failed(ask(over_streams(tmp_path), after_it_went))


@pytest.mark.parametrize("name", ["eve", "ada"])
def test_options_name_the_caller(tmp_path, name):
    workshop = Workshop(tmp_path)
    workshop.sections["source"] = {"visibility": "individual", "user_id": "ada"}
    workshop.write("secret.md", "The word opens the vault.")
    workshop.refresh()
    found = call(over_streams(tmp_path, "--user", name), "list_documents")
    assert found.structured_content["total"] == (1 if name == "ada" else 0)


@pytest.mark.parametrize("mode", MODES)
def test_remember_is_off_until_it_is_allowed_and_tells_each_verdict(tmp_path, mode):
    workshop = Workshop(tmp_path)
    workshop.write("oak.md", "The oak table has four legs.")
    workshop.refresh()
    with pytest.raises(MCPError, match="there is no tool 'remember'"):
        call(over_streams(tmp_path, mode=mode), "remember", text="staging: is reset every Monday.")
    with ChatServer(session_model.answer) as model:
        (tmp_path / "parquetry.toml").write_text(
            f'[corpus]\nroot = "corpus"\n[llm]\nmodel = "m"\nbase_url = "{model.url}"\n[sessions]\nsimilarity = 0.3\n'
        )

        async def statements(client):
            said = ("is reset every Monday.", "is reset every Monday.", "is backed up every Friday.")
            answers = [await client.call_tool("remember", {"text": f"staging: {each}"}) for each in said]
            found = await client.call_tool("search_knowledge", {"query": "When is staging reset?", "type": "entries"})
            secret = await client.call_tool(
                "remember", {"text": "The key is sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56."}
            )
            return answers, found, secret

        answers, found, secret = ask(over_streams(tmp_path, "--allow-remember", "--user", "ada", mode=mode), statements)
    assert [each.structured_content["status"] for each in answers] == ["new", "existing", "merged"]
    assert {each.structured_content["level"] for each in answers} == {"individual"}
    assert "> staging: is reset every Monday. staging: is backed up every Friday." in text_of(answers[-1])
    assert "> staging: is reset every Monday. staging: is backed up every Friday." in text_of(found)
    assert failed(secret).startswith("not remembered: secret: ")
    assert "sk-proj" not in failed(secret)


def test_a_service_is_passed_on_with_the_rights_of_its_token(shop, app):
    names, found = ask(
        over_streams(shop.root, "--service", app.url, PARQUETRY_TOKEN=app.plain["hal"]), _names_and_search
    )
    assert names == ["search_knowledge", "search"]
    direct, _ = ask(over_http(app.url, app.plain["ada"]), _names_and_search)
    names, found = ask(
        over_streams(shop.root, "--service", app.url, PARQUETRY_TOKEN=app.plain["ada"]), _names_and_search
    )
    assert names == direct
    assert "> Everybody has thirty days of holiday." in text_of(found)


async def _names_and_search(client):
    names = [tool.name for tool in (await client.list_tools()).tools]
    return names, await client.call_tool("search_knowledge", {"query": "How many days of holiday?"})


def test_a_service_in_each_generation_with_resources_prompts_and_errors(shop, app):
    async def all_of_it(client):
        resources = await client.list_resources()
        content = await client.read_resource(resources.resources[0].uri)
        prompts = await client.list_prompts()
        prompt = await client.get_prompt("research", {"question": "oak"})
        missing = await client.call_tool("read_document", {"id": "none"})
        return len(resources.resources), content.contents[0].text, len(prompts.prompts), prompt, missing

    for mode in MODES:
        bridge = over_streams(shop.root, "--service", app.url, mode=mode, PARQUETRY_TOKEN=app.plain["ada"])
        count, text, prompts, prompt, missing = ask(bridge, all_of_it)
        assert (count, prompts) == (3, 2)
        assert text
        assert prompt.messages[0].content.text.endswith("Question: oak")
        assert failed(missing) == "no document 'none'"


@pytest.mark.parametrize(
    ("arguments", "environment", "line", "code"),
    [
        (["--corpus", "none"], {}, "none", 2),
        (["--allow-remember"], {}, "set model in [llm]", 2),
        (["--service", "http://127.0.0.1:1"], {}, "cannot be reached", 4),
        (["--service", "http://127.0.0.1:1", "--user", "ada"], {}, "leave out", 2),
        (["--service", "{url}"], {"PARQUETRY_TOKEN": "pqt_wrong"}, "not a token", 2),
    ],
)
def test_what_cannot_be_served_is_told_before_the_protocol_begins(shop, app, arguments, environment, line, code):
    done = subprocess.run(
        [sys.executable, "-m", "parquetry.serving.cli.main", "mcp", *(each.format(url=app.url) for each in arguments)],
        cwd=shop.root,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert line in done.stderr, done.stderr
    assert done.stdout == ""
    assert done.returncode == code, done.stderr
    assert "pqt_wrong" not in done.stderr


def test_standard_output_holds_messages_alone_and_its_end_ends_the_process(shop):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}},
    ]
    command = [sys.executable, "-m", "parquetry.serving.cli.main", "mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=shop.root, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdin.write("".join(f"{json.dumps(each)}\n" for each in messages))
        process.stdin.flush()
        # The end of the input gives up what is not answered yet.
        answers = [json.loads(process.stdout.readline()) for _ in messages]
        rest, told = process.communicate(timeout=120)
    assert {each["id"] for each in answers} == {1, 2}
    assert all("result" in each for each in answers)
    assert (rest, process.returncode) == ("", 0), told
