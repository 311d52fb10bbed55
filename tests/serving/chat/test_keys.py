"""No token of this service reaches a model service, no path leads elsewhere, and nobody spends the key of another."""

import http.client
import re

import pytest

from tests.servers.model_service import ModelService, failing, said, text_stream, whole
from tests.serving.chat.conftest import proxy
from tests.serving.chat.events import error_of

OWN_KEY = "sk-own-key-of-the-service"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "holiday?"}]}


def v1_routes(app):
    """Yield method and path of every route below `/v1`."""
    for included in app.app.routes:
        for route in included.original_router.routes if hasattr(included, "original_router") else [included]:
            if getattr(route, "path", "").startswith("/v1"):
                for method in route.methods:
                    yield method, re.sub(r"{[^}]*}", "none", route.path)


PASSED_ON = ("completions", "audio/speech", "batches", "fine_tuning/jobs/j/events", "unknown/path")


def every_path(running):
    found = set(v1_routes(running.app))
    assert ("POST", "/v1/chat/completions") in found
    return sorted(found | {(method, f"/v1/{path}") for path in PASSED_ON for method in ("GET", "POST", "DELETE")})


def answer(asked):
    """Answer whatever is asked: redirects by name, else something that fits."""
    if asked.path.endswith("/chat/completions"):
        return text_stream("x") if b'"stream":true' in asked.content else said("x")
    return whole({"object": "list", "data": []})


@pytest.mark.slow
@pytest.mark.parametrize("place", ["bearer", "header", "both"])
def test_no_token_reaches_the_model_service_on_any_route(running, model, place):
    """The routes are those of the application, whatever dialects it speaks by now."""
    token = running.tokens["root"]
    headers = {
        "bearer": {"Authorization": f"Bearer {token}"},
        "header": {"Authorization": "Bearer sk-foreign", "X-Parquetry-Token": token},
        "both": {"Authorization": f"Bearer {token}", "X-Parquetry-Token": token},
    }[place]
    headers |= {
        "Cookie": f"session={token}", "X-Parquetry-Namespace": "default", "Referer": token, "User-Agent": token,
        "Proxy-Authorization": f"Bearer {token}", "X-Api-Key": token, "Api-Key": token, "X-Title": token,
        "OpenAI-Organization": token, "X-Stainless-Lang": token, "Forwarded": "for=10.0.0.7",
        "X-Forwarded-For": "10.0.0.7", "Idempotency-Key": token, "Range": "bytes=0-",
    }  # fmt: skip
    for status in (200, 302, 500):
        model.rule = lambda asked, status=status: (
            answer(asked) if status == 200 else whole({"error": {"message": "no"}}, status, Location="/v1/other")
        )
        with running.app.client(None, **headers) as client:
            for method, path in every_path(running):
                for stream in (False, True):
                    client.request(method, path, json={**CHAT, "stream": stream}, follow_redirects=True)
    assert len(model.requests) > 50
    for asked in model.requests:
        assert token.encode() not in asked.everything, asked.path
        assert b"pqt_" not in asked.everything, asked.path
        names = {name.lower() for name, _ in asked.headers}
        assert not [name for name in names if name.startswith(("x-parquetry", "x-forwarded")) or "cookie" in name]
        assert not names & {"proxy-authorization", "x-api-key", "api-key", "forwarded", "referer"}
        assert asked.key == ("sk-foreign" if place == "header" else OWN_KEY)


@pytest.mark.parametrize(
    "request_of",
    [
        lambda client, token: client.post("/v1/chat/completions", json={**CHAT, "user": token}),
        lambda client, token: client.post(
            "/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": f"is {token} mine?"}]}
        ),
        lambda client, token: client.post("/v1/completions", json={"prompt": token}),
        lambda client, token: client.post("/v1/embeddings", json={"model": "e5", "input": token}),
        lambda client, token: client.get("/v1/models", params={"key": token}) and client.get(f"/v1/x/{token}"),
        lambda client, token: client.get("/v1/things", params={"key": token}),
        lambda client, token: client.post(
            "/v1/audio/transcriptions", content=b"x" * 3_000_000 + token.encode() + b"x" * 100
        ),
        lambda client, token: client.post(
            "/v1/audio/transcriptions", content=iter([b"x" * 70, token[:9].encode(), token[9:].encode()])
        ),
    ],
    ids=["user", "message", "prompt", "input", "path", "query", "long body", "body in parts"],
)  # fmt: skip
def test_a_token_in_the_wrong_place_is_refused_instead(running, model, request_of):
    model.rule = answer
    token = running.tokens["root"]
    with running.app.client("sk-foreign") as client:
        error_of(request_of(client, token), 400, "token_would_leave")
    assert all(token.encode() not in asked.everything for asked in model.requests)


def test_a_token_in_a_document_is_masked(shelf, running, ask, model):
    """Grounding masks it; see test_grounding.py."""
    model.expect(said("x"))
    ask()
    assert b"pqt_" not in model.requests[0].everything


def test_a_foreign_bearer_is_anonymous_and_pays_for_itself(running, model):
    model.rule = answer
    with running.app.client("sk-foreign") as client:
        client.post("/v1/chat/completions", json=CHAT)
        client.post("/v1/completions", json={})
        client.get("/v1/fine_tuning/jobs")
    assert [asked.key for asked in model.requests] == ["sk-foreign"] * 3
    assert "ada" not in model.requests[0].context


@pytest.mark.parametrize(
    "authorization", ["Bearer", "Basic YTpi", "sk-naked", "Bearer\tsk-x", "Bearer sk-\xe9", "Digest x"]
)
def test_who_brings_no_key_gets_none(running, model, authorization):
    """These callers are anonymous: the key of the service is not theirs."""
    model.rule = answer
    headers = [(b"Authorization", authorization.encode("latin-1"))]
    with running.app.client() as client:
        for path in ("chat/completions", "completions"):
            error_of(client.post(f"/v1/{path}", json=CHAT, headers=headers), 401, "invalid_api_key")
        error_of(client.get("/v1/models", headers=headers), 401, "invalid_api_key")
    assert model.requests == []


def test_token_in_its_own_header_names_the_caller_and_the_bearer_pays(running, model):
    model.expect(said("x"))
    with running.app.client("sk-foreign", **{"X-Parquetry-Token": running.tokens["ada"]}) as client:
        answer = client.post(
            "/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "vault word"}]}
        ).json()
    assert "ada.md" in [each["source"] for each in answer["rag_sources"]]
    assert model.requests[0].key == "sk-foreign"


def test_local_operator_uses_the_key_of_the_service(running, model):
    model.expect(said("x"))
    with running.app.client() as client:
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
    assert model.requests[0].key == OWN_KEY


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "batches"),
        ("DELETE", "models/m"),
        ("GET", "chat/completions"),
        ("POST", "fine_tuning/jobs"),
        ("GET", "x"),
    ],
)
def test_what_callers_keep_under_the_key_of_the_service_is_for_administrators(running, model, method, path):
    """All share that key, so the model service could not tell them apart."""
    model.rule = answer
    with running.app.client(running.tokens["ada"]) as client:
        error_of(client.request(method, f"/v1/{path}"), 403, "insufficient_permissions")
    assert model.requests == []
    with running.app.client(running.tokens["root"]) as client:
        assert client.request(method, f"/v1/{path}").status_code == 200
    with running.app.client("sk-foreign") as client:
        assert client.request(method, f"/v1/{path}").status_code == 200


# --- paths


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../admin", "/v1/x/../../admin", "/v1/%2e%2e/admin", "/v1/%2E%2E%2Fadmin", "/v1/x/%252e%252e/y",
        "/v1/..%5cadmin", "/v1/.%2e/admin", "/v1//evil.example/x", "/v1/x//y", "/v1/./x", "/v1/..;/admin", "/v1/x/%00",
        "/v1/x/%0d%0aHost:%20evil",
        "/v1/%25%32%65%25%32%65/admin", "/v1/x\\..\\y", "/v1/", "/v1/x/",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_base_address(running, model, path):
    host, port = running.app.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", "localhost")
    connection.putheader("Authorization", "Bearer sk-foreign")
    connection.endheaders()
    assert connection.getresponse().status in (400, 404)
    connection.close()
    assert model.requests == []


def test_path_query_and_body_go_on_as_they_are(running, model):
    model.rule = lambda asked: whole(b"\x00\xff", 418, X_Request_Id="r7")
    with running.app.client("sk-foreign") as client:
        answer = client.post(
            "/v1/models/meta%2Fllama/x@y?a=%20b&a=c+d", content=b"\x00raw", headers={"Content-Type": "x/y"}
        )
    assert (answer.status_code, answer.content, answer.headers["x-request-id"]) == (418, b"\x00\xff", "r7")
    (asked,) = model.requests
    assert (asked.path, asked.content) == ("/v1/models/meta%2Fllama/x@y?a=%20b&a=c+d", b"\x00raw")
    assert dict(asked.headers)["content-type"] == "x/y"


def test_large_bodies_stream_both_ways(running, model):
    model.rule = lambda asked: whole(asked.content)
    content = bytes(range(256)) * 20_000
    with running.app.client("sk-foreign") as client:
        assert client.post("/v1/audio/transcriptions", content=content).content == content
        pieces = (content[start : start + 100_000] for start in range(0, len(content), 100_000))
        assert client.post("/v1/audio/transcriptions", content=pieces).content == content
    assert {name.lower() for name, _ in model.requests[1].headers} >= {"transfer-encoding"}


def test_body_beyond_the_limit_is_refused_while_it_arrives(shelf):
    serve = {"max_body_bytes": 2_000_000}
    with (
        ModelService(rule=answer) as service,
        proxy(shelf, service, serve=serve) as app,
        app.client("sk-foreign") as client,
    ):
        pieces = (b"x" * 100_000 for _ in range(30))
        error_of(client.post("/v1/audio/transcriptions", content=pieces), 413, "too_large")


def test_redirects_are_not_followed_and_do_not_come(running, model):
    model.rule = lambda asked: whole(b"", 302, Location="http://127.0.0.1:9/latest/meta-data")
    with running.app.client("sk-foreign") as client:
        for method, path in (("GET", "x"), ("GET", "models"), ("POST", "chat/completions"), ("POST", "completions")):
            response = client.request(method, f"/v1/{path}", json=CHAT)
            error_of(response, 502, "upstream_redirected")
            assert "location" not in response.headers
            assert "meta-data" not in response.text


def test_an_error_passed_on_keeps_its_form(running, model):
    model.rule = lambda asked: failing(404, "nothing here", code="unknown_url")
    with running.app.client("sk-foreign") as client:
        assert error_of(client.get("/v1/x"), 404, "unknown_url") == "nothing here"
    model.rule = lambda asked: failing(401, f"wrong key {OWN_KEY}")
    with running.app.client(running.tokens["root"]) as client:
        assert OWN_KEY not in error_of(client.get("/v1/x"), 502, "upstream_refused")
