"""`/api/knowledge`, field by field, over a real socket."""

import base64
import time

import pytest

from tests.serving.http.checks import ok, problem

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("service-agents")]
HTML = b"""<html><head><title>Ash</title></head><body><article>
<p>The ash bench is in the yard behind the old mill.</p>
</article></body></html>"""
SUMMARY = {"id", "filename", "contentType", "fileSize", "createdAt", "fragmentCount", "source", "url"}


def the_id(client, filename):
    (found,) = [
        each for each in ok(client.get("/api/knowledge/documents"))["documents"] if each["filename"] == filename
    ]
    return found["id"]


def test_stats_count_documents_and_fragments_of_the_namespace(client):
    told = ok(client.get("/api/knowledge/stats"))
    assert told.keys() == {"documentCount", "fragmentCount", "agentId"}
    assert told["agentId"] == "default"
    assert told["documentCount"] >= 3
    empty = ok(client.get("/api/knowledge/stats", params={"namespace": "nothing-here"}))
    assert empty == {"documentCount": 0, "fragmentCount": 0, "agentId": "nothing-here"}


def test_documents_are_listed_with_every_field(client):
    page = ok(client.get("/api/knowledge/documents", params={"limit": 2, "offset": 1}))
    assert (page["limit"], page["offset"], len(page["documents"])) == (2, 1, 2)
    assert page["total"] >= 3
    for each in page["documents"]:
        assert each.keys() == SUMMARY
        assert each["url"] is None
        assert each["source"] == "docs"
        assert abs(each["createdAt"] / 1000 - time.time()) < 86_400


def test_document_has_its_text(client):
    told = ok(client.get(f"/api/knowledge/documents/{the_id(client, 'oak.txt')}"))
    assert told.keys() == SUMMARY | {"content", "metadata"}
    assert told["content"].strip() == "The oak table has four legs and costs 640 euros."
    assert told["contentType"] == "text/plain"


def test_unknown_document_is_not_found(client):
    problem(client.get("/api/knowledge/documents/none"), 404, "no-such-document")
    problem(client.get("/api/knowledge/fragments/none"), 404, "no-such-document")
    problem(client.delete("/api/knowledge/documents/none"), 404, "no-such-document")


def test_fragments_are_in_order(client):
    document = the_id(client, "leave.md")
    told = ok(client.get(f"/api/knowledge/fragments/{document}"))
    assert told.keys() == {"documentId", "fragments", "count"}
    assert told["count"] == len(told["fragments"]) > 0
    assert [each["position"] for each in told["fragments"]] == list(range(told["count"]))
    assert all(each.keys() == {"id", "text", "position", "createdAt"} for each in told["fragments"])


def test_search_returns_what_answers_and_nothing_for_what_nothing_answers(client):
    told = ok(client.get("/api/knowledge/search", params={"q": "How many days of holiday does everybody have?"}))
    assert told.keys() == {"query", "threshold", "results", "count"}
    assert told["threshold"] == 0.3
    assert told["count"] == len(told["results"]) > 0
    first = told["results"][0]
    assert first.keys() == {"id", "text", "similarity", "documentId", "documentTitle", "position"}
    assert "thirty days" in first["text"]
    assert 0.3 <= first["similarity"] <= 1
    assert first["documentTitle"] == "Leave"
    nothing = ok(client.get("/api/knowledge/search", params={"q": "quantum chromodynamics lattice gauge"}))
    assert nothing["results"] == []


@pytest.mark.parametrize(
    "params", [{}, {"q": ""}, {"q": "x", "limit": 201}, {"q": "x", "limit": 0}, {"q": "x", "threshold": 1.1}]
)
def test_wrong_searches_are_refused(client, params):
    problem(client.get("/api/knowledge/search", params=params), 422, "invalid-request")


def test_added_text_is_found_by_the_next_request_and_gone_after_its_deletion(client):
    sent = {
        "content": "The zebra crossing is closed on Mondays.",
        "filename": "zebra.md",
        "contentType": "text/markdown",
    }
    added = ok(client.post("/api/knowledge/documents", json={**sent, "metadata": {"author": "Ada", "salary": 3}}))
    assert added.keys() == {"ok", "documentId", "filename", "contentType", "fragmentCount", "warnings"}
    assert (added["ok"], added["filename"], added["contentType"]) == (True, "zebra.md", "text/markdown")
    assert added["fragmentCount"] == 1
    found = ok(client.get("/api/knowledge/search", params={"q": "When is the zebra crossing closed?"}))
    assert found["results"][0]["documentId"] == added["documentId"]
    shown = ok(client.get(f"/api/knowledge/documents/{added['documentId']}"))
    assert (shown["source"], shown["url"], shown["content"].strip()) == ("upload", None, sent["content"])
    assert shown["metadata"]["author"] == "Ada"
    assert "salary" not in shown["metadata"]
    gone = ok(client.delete(f"/api/knowledge/documents/{added['documentId']}"))
    assert gone == {"ok": True, "deletedFragments": 1}
    problem(client.get(f"/api/knowledge/documents/{added['documentId']}"), 404, "no-such-document")
    assert all(
        each["documentId"] != added["documentId"]
        for each in ok(client.get("/api/knowledge/search", params={"q": "zebra crossing"}))["results"]
    )


def test_descriptions_of_images_that_are_not_made_are_told(client):
    sent = {"content": "The linden lane is long.", "filename": "linden.md", "includeImageDescriptions": True}
    (warning,) = ok(client.post("/api/knowledge/documents", json=sent))["warnings"]
    assert "set model in [llm]" in warning


def test_the_same_name_again_replaces(client):
    one = ok(client.post("/api/knowledge/documents", json={"content": "The gate is green.", "filename": "gate.md"}))
    two = ok(client.post("/api/knowledge/documents", json={"content": "The gate is blue.", "filename": "gate.md"}))
    same = ok(client.post("/api/knowledge/documents", json={"content": "The gate is blue.", "filename": "gate.md"}))
    assert one["documentId"] == two["documentId"] == same["documentId"]
    shown = ok(client.get(f"/api/knowledge/documents/{one['documentId']}"))
    assert shown["content"].strip() == "The gate is blue."


def test_bytes_come_in_base64_or_in_a_form(client):
    page = HTML
    sent = {"content": base64.b64encode(page).decode(), "filename": "ash.html", "contentType": "application/xhtml+zip"}
    added = ok(client.post("/api/knowledge/documents", json=sent))
    assert added["fragmentCount"] == 1
    form = client.post(
        "/api/knowledge/documents",
        files={"file": ("elm.txt", b"The elm stool has three legs.", "text/plain")},
        data={"metadata": '{"room": 4}', "tags": ["wood", "stool"]},
    )
    shown = ok(client.get(f"/api/knowledge/documents/{ok(form)['documentId']}"))
    assert shown["metadata"]["room"] == 4
    assert shown["contentType"] == "text/plain"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"content": "x"}, "invalid-request"),
        ({"content": "x", "filename": "a.md", "colour": "red"}, "invalid-request"),
        ({"content": "no base64!", "filename": "a.pdf", "contentType": "application/pdf"}, "invalid-base64"),
        ({"content": "", "filename": "nothing.md"}, "empty"),
        ({"content": "UEsDBGtub2NrIGtub2Nr", "filename": "a.docx"}, "damaged"),
    ],
)
def test_what_cannot_be_read_fails_the_request(client, body, reason):
    problem(client.post("/api/knowledge/documents", json=body), 422, reason)


def test_body_that_is_no_json_is_refused(client):
    problem(
        client.post("/api/knowledge/documents", content=b"{", headers={"content-type": "application/json"}),
        422,
        "invalid-request",
    )


def test_write_that_does_not_wait_is_a_job(client):
    body = {"content": "The larch door creaks.", "filename": "larch.md"}
    for options in ({"params": {"wait": "false"}}, {"headers": {"Prefer": "respond-async"}}):
        response = client.post("/api/knowledge/documents", json=body, **options)
        told = ok(response, 202)
        assert response.headers["location"] == f"/api/v1/jobs/{told['job_id']}"
        end = time.monotonic() + 60
        while (job := ok(client.get(response.headers["location"])))["state"] in ("queued", "running"):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert job["state"] == "completed", job
        (document,) = job["result"]["documents"]
        found = ok(client.get("/api/knowledge/search", params={"q": "larch door"}))
        assert document["document_id"] in [each["documentId"] for each in found["results"]]


@pytest.mark.parametrize(
    "url", ["ftp://example.com/x", "http://127.0.0.1/", "http://169.254.169.254/latest", "file:///etc/passwd"]
)
def test_import_leads_nowhere_inside(client, url):
    response = client.post("/api/knowledge/documents/url", json={"url": url})
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == "application/problem+json"
