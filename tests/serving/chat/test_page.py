"""The lines of docs/chat.md work when they are pasted; one command is all that a person with a local model needs."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from tests.documentation import blocks_of
from tests.servers.knowledge_service import KnowledgeService
from tests.servers.model_service import ModelService, call, call_stream, said, text_stream
from tests.serving.program import command

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("chat-page")]
HOST = "http://127.0.0.1:8000"
PAGE = "docs/chat.md"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("page")
    (root / "docs").mkdir()
    (root / "docs" / "holidays.md").write_text("# Holidays\n\nEverybody has thirty days of holiday.\n")
    with ModelService() as model, KnowledgeService(root, "docs", "--upstream", model.base_url) as service:
        service.wait_for(lambda client: client.get("/files").json().get("total") == 1)
        yield root, service, model


def lines_of(language):
    return [block.code for block in blocks_of(PAGE) if block.language == language]


def test_the_line_with_curl(place):
    _, service, model = place
    (line,) = [line for code in lines_of("sh") for line in code.splitlines() if line.startswith("curl ")]
    model.expect(said("Thirty days."))
    done = subprocess.run(shlex.split(line.replace(HOST, service.url)), capture_output=True, check=True, text=True)
    answer = json.loads(done.stdout)
    assert answer["choices"][0]["message"]["content"] == "Thirty days."
    assert answer["rag_sources"][0]["source"] == "holidays.md"
    assert model.requests[-1].body["model"] == "llama3.2"
    assert model.requests[-1].key is None


def test_the_lines_in_python(place):
    _, service, model = place
    (code,) = lines_of("python")
    model.expect(said("Thirty days."))
    done = subprocess.run(
        [sys.executable, "-c", code.replace(HOST, service.url)], capture_output=True, check=True, text=True
    )
    assert done.stdout.startswith("Thirty days. [{'source': 'holidays.md'")


def test_the_settings_are_valid(tmp_path):
    # The other one is for Open WebUI: see test_containers_page.py.
    (code,) = (each for each in lines_of("toml") if "[upstream]" in each)
    (tmp_path / "parquetry.toml").write_text(code)
    shown = subprocess.run(command("plan"), cwd=tmp_path, capture_output=True, text=True, env={**os.environ})
    assert "agent" not in shown.stderr
    assert "upstream" not in shown.stderr


def test_lines_for_containers_name_what_exists(place):
    """Docker is not there; the token, the address and the name of the host are."""
    root, _, model = place
    text = "\n".join(lines_of("sh"))
    assert "--add-host=host.docker.internal:host-gateway" in text
    made = subprocess.run(
        command("token", "create", "--name", "Open WebUI", "--json"),
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    key = next(line for line in text.splitlines() if "token create" in line)
    member = key.split("json.load(sys.stdin)['")[1].split("'")[0]
    token = json.loads(made.stdout)[member]
    assert token.startswith("pqt_")
    model.expect(said("Thirty days."))
    with KnowledgeService(root, "--host", "0.0.0.0", "--upstream", model.base_url) as service:
        service.wait_ready()
        sent = {"model": "m", "messages": [{"role": "user", "content": "holiday?"}]}
        url = service.url.replace("0.0.0.0", "127.0.0.1")
        with service.client(token) as client:
            client.base_url = url
            client.headers["Host"] = "host.docker.internal:8000"
            assert client.post("/v1/chat/completions", json=sent).status_code == 200
            assert client.get("/v1/models", headers={"Authorization": "Bearer none"}).status_code == 401


def test_streams_and_tools_through_the_whole_service(place):
    _, service, model = place
    model.expect(call_stream(call("read_full_document", path="holidays.md")), text_stream("Thirty.", number=2))
    sent = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "holiday?"}]}
    with service.client() as client:
        text = client.post("/v1/chat/completions", json=sent).text
        assert text.endswith("data: [DONE]\n\n")
        assert '"rag_sources":[{"source":"holidays.md"' in text
        again = client.post("/reindex").json()
        assert again["documents"]["unchanged"] == 1
        assert again["failures"] == []
    assert "runs backwards" not in text


def test_an_upstream_that_is_no_address_is_told_at_once(tmp_path):
    for value in ("localhost:11434", "ftp://x/v1", "http://user:secret-word-1@x/v1", "http://x/v1?key=1"):
        done = subprocess.run(command("serve", "--upstream", value), cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2, value
        assert "upstream.base_url" in done.stderr
        assert "secret-word-1" not in done.stderr
