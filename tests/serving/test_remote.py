"""Requests of a corpus behind a service, against scripted answers; `test_corpus.py` runs them against a real one."""

from datetime import UTC, datetime

import pytest

from parquetry import Corpus, Filters, SettingsError
from parquetry.errors import OutageError, RefusedError, SkippedDocument
from parquetry.serving import remote
from parquetry.storage.search.filters import Caller
from parquetry.storage.search.metadata_conditions import MetadataComparison
from tests.servers.scripted_service import Scripted, ScriptedService

RETRIEVE = "/api/v1/knowledge/hr/retrieve"
EMPTY = {"chunks": [], "version": 7}
JOB = {"id": "job-1", "kind": "ingest", "state": "completed", "reason": None, "detail": None, "result": None}
ACCEPTED = {"job_id": "job-1", "state": "queued"}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(remote, "_LOOKS", ((float("inf"), 0),))


def test_namespace_of_the_token_is_asked_for_once():
    stats = Scripted("GET", "/api/knowledge/stats", {"documentCount": 1, "fragmentCount": 1, "agentId": "hr"})
    search = Scripted("POST", RETRIEVE, EMPTY)
    with ScriptedService(stats, search, search) as service, Corpus(service.url, token="pqt_abcdefgh") as corpus:
        assert corpus.search("a") == corpus.search("b") == ()
        assert corpus.version == 7


def test_every_filter_and_option_is_sent():
    filters = Filters(
        namespaces=("hr",),
        filename="*.md",
        tags=("policy",),
        media_type="text/plain",
        source="docs",
        since=datetime(2031, 1, 1, tzinfo=UTC),
        until=datetime(2032, 1, 1, tzinfo=UTC),
        metadata=(("author", "Ada"),),
        comparisons=(
            MetadataComparison("year", "gte", (2020,)),
            MetadataComparison("year", "lt", (2030,)),
            MetadataComparison("n", "eq", (1,)),
        ),
        user_id="ada",
        what="both",
    )
    with ScriptedService(Scripted("POST", RETRIEVE, EMPTY)) as service:
        with Corpus(service.url, namespace="hr") as corpus:
            corpus.search(
                "q", k=3, mode="text", filters=filters, context="c", min_relevance=0.5, level="document", rerank=True
            )
        ((_, _, body),) = service.requests
    assert body == {
        "query": "q",
        "top_k": 3,
        "mode": "text",
        "level": "document",
        "rerank": True,
        "type": "both",
        "fields": "all",
        "context": "c",
        "min_score": 0.5,
        "filters": {
            "filename": "*.md",
            "tags": ["policy"],
            "user_id": "ada",
            "source": "docs",
            "media_type": "text/plain",
            "metadata": {"author": "Ada", "year": {"gte": 2020, "lt": 2030}, "n": {"in": [1]}},
            "since": "2031-01-01T00:00:00+00:00",
            "until": "2032-01-01T00:00:00+00:00",
        },
    }


@pytest.mark.parametrize(
    "filters",
    [
        Filters(caller=Caller("ada")),
        Filters(any_tags=("a",)),
        Filters(where="true"),
        Filters(("other",)),
        Filters(metadata=(("author", "Ada"), ("author", "Bob"))),
        Filters(metadata=(("year", "2020"),), comparisons=(MetadataComparison("year", "lt", (2030,)),)),
        Filters(comparisons=(MetadataComparison("year", "lt", (2030,)), MetadataComparison("year", "lt", (2020,)))),
    ],
    ids=repr,
)
def test_filter_that_a_service_lacks_is_refused_before_anything_is_sent(filters):
    """Left out, it would show what it was to leave out."""
    with ScriptedService() as service, Corpus(service.url, namespace="hr") as corpus:
        with pytest.raises(SettingsError):
            corpus.search("q", filters=filters)
        with pytest.raises(SettingsError):
            corpus.entries(filters)


def test_many_queries_go_in_requests_of_a_hundred():
    answers = [
        Scripted("POST", RETRIEVE, {**EMPTY, "results": [[]] * 100}),
        Scripted("POST", RETRIEVE, {**EMPTY, "results": [[]] * 100}),
        Scripted("POST", RETRIEVE, EMPTY),
    ]
    with ScriptedService(*answers) as service, Corpus(service.url, namespace="hr") as corpus:
        assert corpus.search_all([str(i) for i in range(201)]) == [()] * 201
        bodies = [body for _, _, body in service.requests]
    assert [len(body.get("queries", "1")) for body in bodies] == [100, 100, 1]
    assert bodies[2]["query"] == "200"


def test_lists_are_read_page_by_page_to_their_end():
    document = {
        "document_id": "d",
        "filename": "a.md",
        "source": "docs",
        "uri": "file:///a.md",
        "media_type": None,
        "size": 1,
        "chunks": 1,
        "status": "indexed",
        "metadata": {},
        "tags": [],
        "visibility": "public",
        "created_at": "2031-01-01T00:00:00Z",
    }
    place = "/api/v1/knowledge/hr/documents"
    script = [
        Scripted("GET", f"{place}?limit=1000", {"documents": [document], "version": 7, "next": "v7-1"}),
        Scripted("GET", f"{place}?limit=1000&page=v7-1", {"documents": [document], "version": 7, "next": None}),
        Scripted("GET", "/api/v1/entries?namespace=hr&limit=1000&offset=0", {"entries": [{"a": 1}], "total": 2}),
        Scripted("GET", "/api/v1/entries?namespace=hr&limit=1000&offset=1", {"entries": [{"a": 2}], "total": 2}),
    ]
    with ScriptedService(*script) as service, Corpus(service.url, namespace="hr") as corpus:
        found = corpus.documents()
        assert [each.created_at for each in found] == [datetime(2031, 1, 1, tzinfo=UTC)] * 2
        assert corpus.entries() == [{"a": 1}, {"a": 2}]


def add_script(*jobs):
    looks = [Scripted("GET", "/api/v1/jobs/job-1", {**JOB, **job}) for job in jobs]
    return [Scripted("POST", "/api/v1/knowledge/hr/documents", ACCEPTED, 202), *looks]


def test_change_that_takes_long_is_waited_for():
    added = {"document_id": "d", "filename": "text.md", "chunks": 2, "warnings": ["long"]}
    script = add_script({"state": "queued"}, {"state": "running"}, {"result": {"documents": [added]}})
    with ScriptedService(*script) as service, Corpus(service.url, namespace="hr") as corpus:
        done = corpus.add("a text")
    assert (done.document_id, done.chunks, done.warnings, done.job) == ("d", 2, ("long",), None)


def test_change_that_is_not_waited_for_names_its_job():
    accepted = Scripted("POST", "/api/v1/knowledge/hr/documents?wait=false", ACCEPTED, 202)
    job = Scripted("POST", "/api/v1/jobs?wait=false", ACCEPTED, 202)
    with ScriptedService(accepted, job) as service, Corpus(service.url, namespace="hr") as corpus:
        added = corpus.add("a text", wait=False)
        assert (added.document_id, added.job) == (None, "job-1")
        assert corpus.refresh("docs", wait=False).job == "job-1"
        assert service.requests[1][2] == {
            "kind": "refresh",
            "targets": ["docs"],
            "allow_removals": False,
            "namespace": "hr",
        }


@pytest.mark.parametrize(
    ("job", "kind", "reason"),
    [
        ({"reason": "empty", "detail": "no text", "result": {"documents": [{}]}}, SkippedDocument, "empty"),
        ({"reason": "outage", "detail": "down", "result": {"documents": [{}]}}, OutageError, "outage"),
        ({"reason": "budget", "detail": "too much"}, RefusedError, "budget"),
        ({"reason": "settings", "detail": "wrong"}, SettingsError, "settings"),
    ],
)
def test_job_that_failed_is_an_error_with_its_reason(job, kind, reason):
    script = add_script({"state": "failed", **job})
    with (
        ScriptedService(*script) as service,
        Corpus(service.url, namespace="hr") as corpus,
        pytest.raises(kind, match=job["detail"]) as raised,
    ):
        corpus.add("a text")
    assert raised.value.reason == reason


def test_ids_cannot_lead_to_another_route():
    place = "/api/v1/knowledge/hr/documents/..%2F..%2Fstats%3Fa"
    missing = Scripted("GET", place, {"detail": "none"}, 404)
    with (
        ScriptedService(missing) as service,
        Corpus(service.url, namespace="hr") as corpus,
        pytest.raises(SettingsError, match="none"),
    ):
        corpus.document("../../stats?a")
