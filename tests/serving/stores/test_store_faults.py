"""A fault in every backend call behind files and vector stores is told in OpenAI's form, never an empty success."""

import re

import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.serving.http.backend_faults import ERRORS, Backend
from tests.serving.http.test_rights import routes
from tests.serving.stores.conftest import OAK
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

ENDED = {"POST complete": ["upload_ended"], "POST cancel upload": ["upload_ended"]}
"""requests whose repetition is refused once they were carried out, with the code"""


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    """Run an application whose jobs nobody carries out."""
    workshop = Workshop(tmp_path_factory.mktemp("idle"))
    workshop.write("oak.md", "# Oak\n\nAn oak table.")
    workshop.refresh()
    tables = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": {"wait_seconds": 0.01}}
    with running_app(parse_settings(tables, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


def new_file(client, **fields):
    return client.post("/v1/files", data={"purpose": "assistants", **fields}, files={"file": ("oak.md", OAK)})


def new_store(client, **fields):
    return client.post("/v1/vector_stores", json=fields)


def id_of(response):
    assert response.is_success, response.text
    return response.json()["id"]


def new_upload(client):
    told = {"bytes": 3, "filename": "a.txt", "mime_type": "text/plain", "purpose": "assistants"}
    return client.post("/v1/uploads", json=told)


def new_part(client, upload):
    return client.post(f"/v1/uploads/{upload}/parts", files={"data": b"abc"})


def whole_upload(client):
    upload = id_of(new_upload(client))
    return upload, id_of(new_part(client, upload))


def requests(client):
    """Yield requests, each with what has to be there before it."""
    file, store = id_of(new_file(client)), id_of(new_store(client))
    attached = f"/v1/vector_stores/{store}/files"
    id_of(client.post(attached, json={"file_id": file}))
    batches = f"/v1/vector_stores/{store}/file_batches"
    batch = id_of(client.post(batches, json={"file_ids": [file]}))
    listed = client.get("/v1/vector_stores", params={"order": "asc", "limit": 100}).json()["data"]
    namespace = next(each["id"] for each in listed if each["metadata"] == {"namespace": "default"})
    document = client.get(f"/v1/vector_stores/{namespace}/files").json()["data"][0]["id"]

    def plain(method, path, **options):
        return f"{method} {path}", lambda: None, lambda _: client.request(method, path, **options)

    yield "POST /v1/files", lambda: None, lambda _: new_file(client)
    yield plain("GET", "/v1/files")
    yield plain("GET", f"/v1/files/{file}")
    yield plain("GET", f"/v1/files/{file}/content")
    yield plain("GET", f"/v1/files/{document}/content")
    yield "DELETE file", lambda: id_of(new_file(client)), lambda id_: client.delete(f"/v1/files/{id_}")
    yield "POST upload", lambda: None, lambda _: new_upload(client)
    yield "POST part", lambda: id_of(new_upload(client)), lambda id_: new_part(client, id_)
    yield (
        "POST complete",
        lambda: whole_upload(client),
        lambda made: client.post(f"/v1/uploads/{made[0]}/complete", json={"part_ids": [made[1]]}),
    )
    yield (
        "POST cancel upload",
        lambda: id_of(new_upload(client)),
        lambda id_: client.post(f"/v1/uploads/{id_}/cancel"),
    )
    yield plain("POST", "/v1/vector_stores", json={"file_ids": [file]})
    yield plain("GET", "/v1/vector_stores")
    yield plain("GET", f"/v1/vector_stores/{store}")
    yield plain("GET", f"/v1/vector_stores/{namespace}")
    yield plain("POST", f"/v1/vector_stores/{store}", json={"name": "other"})
    yield (
        "DELETE store",
        lambda: id_of(new_store(client, file_ids=[file])),
        lambda id_: client.delete(f"/v1/vector_stores/{id_}"),
    )
    yield plain("POST", f"/v1/vector_stores/{store}/search", json={"query": "oak"})
    yield plain("POST", f"/v1/vector_stores/{namespace}/search", json={"query": "oak"})
    yield plain("POST", attached, json={"file_id": file})
    yield plain("GET", attached)
    yield plain("GET", f"{attached}/{file}")
    yield plain("POST", f"{attached}/{file}", json={"attributes": {"a": 1}})
    yield plain("GET", f"/v1/vector_stores/{namespace}/files")
    yield plain("GET", f"/v1/vector_stores/{namespace}/files/{document}")
    yield plain("GET", f"/v1/vector_stores/{namespace}/files/{document}/content")
    yield plain("POST", batches, json={"file_ids": [file]})
    yield plain("GET", f"{batches}/{batch}")
    yield plain("GET", f"{batches}/{batch}/files")
    yield (
        "cancel batch",
        lambda: id_of(client.post(batches, json={"file_ids": [file]})),
        lambda id_: client.post(f"{batches}/{id_}/cancel"),
    )

    def attach_again():
        id_of(client.post(attached, json={"file_id": file}))

    yield "DELETE attached", attach_again, lambda _: client.delete(f"{attached}/{file}")


@pytest.mark.parametrize("kind", sorted(ERRORS))
def test_fault_in_any_backend_call_is_told(idle, kind):
    tried = set()
    with idle.client() as client:
        for name, prepare, ask in requests(client):
            backend = Backend(idle)
            try:
                prepared = prepare()
                backend.calls.clear()
                response = ask(prepared)
                assert response.is_success, (name, response.text)
                for call in sorted(set(backend.calls)):
                    prepared = prepare()
                    with backend.failing(call, ERRORS[kind]()):
                        response = ask(prepared)
                    where = (name, call, response.status_code, response.text)
                    assert response.status_code >= 500, where
                    assert response.json()["error"]["type"] == "server_error", where
                    assert "secret detail" not in response.text, where
                    # Whoever tries again succeeds, or is told that it was done.
                    again = ask(prepared)
                    assert again.is_success or again.json()["error"]["code"] in ENDED.get(name, ()), (where, again.text)
                    tried.add((name, call))
            finally:
                backend.restore()
    assert len(tried) >= 90


def test_every_route_of_files_and_stores_is_among_them(idle):
    """A route that is added without a request above is one whose faults nobody has seen."""
    asked = set()
    with idle.client() as client:
        client.event_hooks["request"].append(lambda request: asked.add((request.method, request.url.path)))
        for name, prepare, ask in requests(client):
            assert ask(prepare()).is_success, name
    for method, template, _ in routes(idle):
        if template.startswith(("/v1/files", "/v1/uploads", "/v1/vector_stores")):
            pattern = re.compile(re.sub(r"{[^}]*}", "[^/]+", template))
            assert any(one == method and pattern.fullmatch(path) for one, path in asked), (method, template)
