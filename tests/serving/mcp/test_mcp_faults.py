"""A fault in every backend call in turn is always told, and never an answer with nothing in it."""

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from parquetry.serving.service.follower import CorpusFollower
from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.servers.mcp_client import ask, over_http
from tests.serving.http.backend_faults import ERRORS, Backend
from tests.serving.mcp.conftest import PEOPLE, opened

pytestmark = pytest.mark.slow

DOOR = ("tokens", "gate")
"""parts that decide before the protocol begins"""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    with opened(folder, {"oak.md": "# Oak\n\nAn oak table."}, wait_seconds=0.01) as app:
        with app.resources.follower.reader(wait=60) as reader:
            (row,) = reader.documents()
        app.document = row["document_id"]
        app.token = app.resources.tokens.create("ada", **PEOPLE["ada"])[1]
        yield app


REQUESTS = {
    "search_knowledge": lambda app, client: client.call_tool(
        "search_knowledge", {"query": "oak table", "include_sources": True}
    ),
    "search": lambda app, client: client.call_tool("search", {"query": "oak table"}),
    "fetch": lambda app, client: client.call_tool("fetch", {"id": app.document}),
    "read_document": lambda app, client: client.call_tool("read_document", {"path": "oak.md"}),
    "list_documents": lambda app, client: client.call_tool("list_documents", {}),
    "remember": lambda app, client: client.call_tool("remember", {"text": "The oak has four legs."}),
    "resources": lambda app, client: client.list_resources(),
    "resource": lambda app, client: client.read_resource(f"parquetry://documents/{app.document}"),
    "prompt": lambda app, client: client.get_prompt("answer_from_documents", {"question": "oak table"}),
}


def calls_of(app, name):
    backend = Backend(app)
    try:
        answer = ask(over_http(app.url, app.token), lambda client: REQUESTS[name](app, client))
        assert not getattr(answer, "is_error", False), answer
        return sorted({call for call in backend.calls if not call.startswith(DOOR)})
    finally:
        backend.restore()


@pytest.mark.parametrize("kind", sorted(ERRORS))
@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_fault_in_any_backend_call_is_told(app, name, kind):
    calls = calls_of(app, name)
    assert calls
    for call in calls:
        backend = Backend(app)
        try:
            with backend.failing(call, ERRORS[kind]()):
                told = error_of(app, name)
        finally:
            backend.restore()
        where = (name, call, told)
        assert told, where
        assert "\n" not in told, where
        assert "secret detail" not in told, where


def error_of(app, name):
    """Return the line that an answer is."""
    try:
        answer = ask(over_http(app.url, app.token), lambda client: REQUESTS[name](app, client))
    except MCPError as error:
        return error.message if error.code == INTERNAL_ERROR else ""
    assert answer.is_error, answer
    (content,) = answer.content
    return content.text


def test_an_empty_corpus_is_no_empty_answer(tmp_path, monkeypatch):
    # A request waits for the first version; not as long as ten seconds here.
    monkeypatch.setattr(CorpusFollower.reader.__wrapped__, "__defaults__", (0.01,))
    settings = {"corpus": {"root": str(tmp_path / "corpus")}}
    with running_app(parse_settings(settings, "test")) as app:
        for name in ("search_knowledge", "search", "list_documents", "resources", "prompt"):
            app.document, app.token = "none", None
            assert "nothing is published" in error_of(app, name), name
