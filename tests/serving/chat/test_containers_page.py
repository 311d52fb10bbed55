"""The files for containers in docs/chat.md are what their programs read: YAML whose names fit together."""

import json
import re
import tomllib
from urllib.parse import urlsplit

import yaml

from parquetry.settings.sections import parse_settings
from tests.documentation import blocks_of
from tests.serving.chat import test_open_webui


def test_files_for_librechat_fit_together():
    found = [
        yaml.safe_load(each.code)
        for each in blocks_of("docs/chat.md")
        if "\n  " in each.code and each.language == "text"
    ]
    settings, compose = (each for each in found if {"endpoints", "services"} & set(each))
    # LibreChat does not start without a version.
    assert re.fullmatch(r"\d+\.\d+\.\d+", settings["version"])
    (endpoint,) = settings["endpoints"]["custom"]
    assert set(endpoint) == {"name", "apiKey", "baseURL", "models"}
    assert endpoint["models"] == {"default": ["llama3.2"], "fetch": True}
    url = urlsplit(endpoint["baseURL"])
    assert (url.port, url.path) == (8000, "/v1")
    server = settings["mcpServers"]["parquetry"]
    assert (server["type"], urlsplit(server["url"])) == ("streamable-http", url._replace(path="/mcp"))
    assert settings["mcpSettings"]["allowedAddresses"] == [url.netloc]
    assert server["headers"] == {"Authorization": f"Bearer {endpoint['apiKey']}"}
    api = compose["services"]["api"]
    assert api["extra_hosts"] == [f"{url.hostname}:host-gateway"]
    assert api["volumes"] == [{"type": "bind", "source": "./librechat.yaml", "target": "/app/librechat.yaml"}]


def test_what_open_webui_is_told_is_what_its_requests_were_tried_with():
    (line,) = (each.code for each in blocks_of("docs/chat.md") if each.code.startswith("TOOL_SERVER_CONNECTIONS="))
    (server,) = json.loads(line.partition("=")[2])
    assert (server["type"], server["auth_type"], urlsplit(server["url"]).path) == ("mcp", "bearer", "/mcp")
    assert {"path", "key", "config", "info"} < set(server)
    (agent,) = (
        tomllib.loads(each.code)
        for each in blocks_of("docs/chat.md")
        if each.language == "toml" and 'name = "tasks"' in each.code
    )
    assert parse_settings(agent, "test").agent == parse_settings({"agent": test_open_webui.AGENTS[1:]}, "test").agent
