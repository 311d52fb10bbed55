"""The configurations of the page about MCP work as they stand, with places and tokens of the tests."""

import json
import re
import shlex
from functools import partial

import pytest

from tests.documentation import blocks_of
from tests.servers.mcp_client import ask, over_http, over_streams
from tests.serving.mcp.conftest import TEXTS
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("mcp-streams")]
PAGE = "docs/mcp.md"
PLACE, ADDRESS = "/path/to/parquetry.toml", "https://kb.example.com"
CONFIGURATIONS = [json.loads(block.code) for block in blocks_of(PAGE) if block.language == "json"]
SERVERS = [
    each for found in CONFIGURATIONS for each in (found.get("mcpServers") or found.get("servers") or {}).values()
]


@pytest.fixture(scope="module")
def settings_file(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("page"))
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    file = workshop.root / "parquetry.toml"
    file.write_text('[corpus]\nroot = "corpus"\n')
    return file


async def names(client):
    return [tool.name for tool in (await client.list_tools()).tools]


def test_page_has_configurations_of_each_kind():
    assert [("command" in each, "url" in each) for each in SERVERS].count((True, False)) == 3
    assert sum("url" in each for each in SERVERS) == 2


@pytest.mark.parametrize("server", [each for each in SERVERS if "command" in each], ids=lambda each: each["args"][1])
def test_command_of_a_configuration_serves(server, settings_file, app, tmp_path):
    assert server["command"] == "parquetry"
    start, *arguments = server["args"]
    assert start == "mcp"
    arguments = [each.replace(PLACE, str(settings_file)).replace(ADDRESS, app.url) for each in arguments]
    environment = dict.fromkeys(server.get("env", {}), app.plain["ada"])
    # Clients start it in some folder.
    found = ask(over_streams(tmp_path, *arguments, **environment), names)
    assert found[:5] == ["search_knowledge", "read_document", "list_documents", "search", "fetch"]


@pytest.mark.parametrize(
    "server", [each for each in SERVERS if "url" in each], ids=lambda each: each.get("type", "url")
)
def test_url_of_a_configuration_is_answered(server, app):
    assert server["url"] == f"{ADDRESS}/mcp"
    ((name, value),) = server["headers"].items()
    assert name == "Authorization"
    assert re.fullmatch(r"Bearer \$\{(env:)?PARQUETRY_TOKEN\}", value)
    headers = {name: re.sub(r"\$\{.*\}", app.plain["ada"], value)}
    assert "search_knowledge" in ask(over_http(app.url, **headers), names)


def test_lines_for_a_terminal_name_the_same_command(settings_file, tmp_path):
    (local,) = [block.code for block in blocks_of(PAGE) if block.language == "sh" and " -- " in block.code]
    words = shlex.split(local.partition(" -- ")[2])
    assert words[:2] == ["parquetry", "mcp"]
    arguments = [each.replace(PLACE, str(settings_file)) for each in words[2:]]
    assert "fetch" in ask(over_streams(tmp_path, *arguments), names)


def test_page_shows_what_a_model_reads(app):
    (shown,) = [block.code for block in blocks_of(PAGE) if block.language == "text"]
    question = {"query": "How many days of holiday?", "top_k": 1}
    result = ask(over_http(app.url, app.plain["ada"]), partial(_searched, question))
    frame = [line for line in result.content[0].text.splitlines() if line and not line.startswith((">", "["))]
    flat = " ".join(shown.split())
    assert len(frame) == 2
    for line in frame:
        assert " ".join(line.split()) in flat, line


async def _searched(question, client):
    return await client.call_tool("search_knowledge", question)
