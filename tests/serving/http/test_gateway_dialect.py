"""`/api/v1/knowledge`, field by field, over a real socket."""

import pytest

from tests.serving.http.checks import ok, problem

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("service-gateway")]
CHUNK = {"chunk_id", "document_id", "text", "score", "metadata", "citations"}
HOLIDAY = "How many days of holiday does everybody have?"


@pytest.fixture(scope="module")
def added(client):
    """Add three documents with metadata; return their ids by source."""
    documents = [
        {"text": "The red barn was built in 1990.", "source": "red.md", "metadata": {"year": 1990, "colour": "red"}},
        {"text": "The blue barn was built in 2005.", "source": "blue.md", "metadata": {"year": 2005, "open": True}},
        {
            "text": "The green barn was built in 2015.",
            "source": "green.md",
            "metadata": {"year": 2015, "salary": {"base": 40}},
            "tags": ["new"],
        },
    ]
    told = ok(client.post("/api/v1/knowledge/default/documents", json={"documents": documents}), 201)
    assert told["ingested"] == 3
    assert len(set(told["document_ids"])) == 3
    return dict(zip(("red", "blue", "green"), told["document_ids"], strict=True))


def retrieve(client, **asked):
    return ok(client.post("/api/v1/knowledge/default/retrieve", json=asked))


def test_chunks_have_the_fields_of_the_contract(client):
    told = retrieve(client, query=HOLIDAY)
    assert told["chunks"]
    for each in told["chunks"]:
        assert each.keys() == CHUNK
        assert each["citations"] is None
    assert "thirty days" in told["chunks"][0]["text"]
    assert len(told["chunks"]) <= 5


def test_citations_name_the_place(client):
    told = retrieve(client, query=HOLIDAY, include_citations=True, top_k=1)
    ((citation,),) = [each["citations"] for each in told["chunks"]]
    assert citation.keys() == {"source", "uri", "page", "span", "snippet", "metadata"}
    assert citation["source"] == "leave.md"
    assert citation["page"] is None or isinstance(citation["page"], str)
    assert "thirty days" in citation["snippet"]


def test_source_of_the_request_is_in_the_metadata(client, added):
    told = retrieve(client, query="When was the red barn built?", top_k=1)
    (chunk,) = told["chunks"]
    assert chunk["document_id"] == added["red"]
    assert chunk["metadata"] == {"source": "red.md", "year": 1990, "colour": "red"}


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"metadata": {"year": 2005}}, {"blue"}),
        ({"metadata": {"year": {"gte": 2005}}}, {"blue", "green"}),
        ({"metadata": {"year": {"gt": 1990, "lt": 2015}}}, {"blue"}),
        ({"metadata": {"year": {"in": [1990, 2015]}}}, {"red", "green"}),
        ({"metadata": {"colour": "red"}}, {"red"}),
        ({"metadata": {"open": True}}, {"blue"}),
        ({"source": "green.md"}, {"green"}),
        ({"filename": "b*.md"}, {"blue"}),
        ({"tags": ["new"]}, {"green"}),
        ({"user_id": "nobody"}, set()),
        ({"until": "2000-01-01T00:00:00Z"}, set()),
    ],
)
def test_filters_apply_before_ranking(client, added, filters, found):
    told = retrieve(client, query="barn built", top_k=50, filters=filters)
    names = {document: name for name, document in added.items()}
    assert {names.get(each["document_id"]) for each in told["chunks"]} == found


@pytest.mark.parametrize("path", ["salary", "salary.base"])
@pytest.mark.parametrize("condition", [40, {"gte": 1}, {"in": [40]}, {"lt": 1000}])
def test_metadata_that_no_answer_shows_answers_no_condition(client, added, path, condition):
    """Else a caller would learn the value by asking for one after another."""
    assert retrieve(client, query="barn built", top_k=50, filters={"metadata": {path: condition}})["chunks"] == []


def test_min_score_leaves_out_what_does_not_answer(client):
    everything = retrieve(client, query="quantum chromodynamics lattice gauge", mode="vector")
    assert everything["chunks"]
    assert retrieve(client, query="quantum chromodynamics lattice gauge", mode="vector", min_score=0.7)["chunks"] == []


def test_several_queries_have_a_list_each(client, added):
    told = retrieve(client, queries=[HOLIDAY, "When was the red barn built?"], top_k=2)
    assert len(told["results"]) == 2
    assert "thirty days" in told["results"][0][0]["text"]
    assert told["results"][1][0]["document_id"] == added["red"]
    ids = [each["chunk_id"] for each in told["chunks"]]
    assert len(ids) == len(set(ids))


def test_documents_instead_of_chunks(client):
    told = retrieve(client, query="holiday moving house", level="document", top_k=20)
    documents = [each["document_id"] for each in told["chunks"]]
    assert len(documents) == len(set(documents))


def test_own_vector_is_searched_with(client):
    told = retrieve(client, vector=[0.01] * 256, top_k=3)
    assert len(told["chunks"]) == 3
    problem(client.post("/api/v1/knowledge/default/retrieve", json={"vector": [0.01] * 3}), 422, "invalid-request")


def test_all_fields_and_texts_come_on_demand(client, added):
    told = retrieve(client, query="When was the red barn built?", top_k=1, fields="all", load="full")
    (chunk,) = told["chunks"]
    assert chunk["content"].strip() == "The red barn was built in 1990."
    fields = chunk["fields"]
    assert (fields["filename"], fields["chunk_index"], fields["total_chunks"]) == ("red.md", 0, 1)
    assert fields.keys() == {
        *("filename", "path", "source", "size", "uploaded_at", "uploaded_by", "visibility", "tags"),
        *("chunk_index", "total_chunks", "page", "headings", "span", "uri", "title"),
    }
    summary = retrieve(client, query="When was the red barn built?", top_k=1, load="summary")["chunks"][0]["summary"]
    assert summary == "The red barn was built in 1990."


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"query": "x", "queries": ["y"]},
        {"queries": ["x", "y"], "explain": True},
        {"query": "x", "top_k": 201},
        {"query": "x", "colour": "red"},
        {"query": "x", "filters": {"colour": "red"}},
        {"query": "x", "mode": "magic"},
        {"query": "x", "filters": {"metadata": {"a..b": "c"}}},
    ],
)
def test_wrong_requests_are_refused(client, asked):
    problem(client.post("/api/v1/knowledge/default/retrieve", json=asked), 422, "invalid-request")


def test_answer_in_words_needs_a_model(client):
    problem(client.post("/api/v1/knowledge/default/query", json={"question": HOLIDAY}), 501, "no-language-model")


def test_pages_and_texts_of_documents(client, added):
    first = ok(client.get("/api/v1/knowledge/default/documents", params={"limit": 2}))
    assert len(first["documents"]) == 2
    seen, page = [each["document_id"] for each in first["documents"]], first["next"]
    while page is not None:
        told = ok(client.get("/api/v1/knowledge/default/documents", params={"limit": 2, "page": page}))
        seen += [each["document_id"] for each in told["documents"]]
        page = told["next"]
    assert len(seen) == len(set(seen)) == first["total"]
    text = ok(client.get(f"/api/v1/knowledge/default/documents/{added['red']}"))
    assert text["text"].strip() == "The red barn was built in 1990."
    chunks = ok(client.get(f"/api/v1/knowledge/default/documents/{added['red']}/chunks"))
    assert [each["span"] for each in chunks["chunks"]] == [[0, 31]]


def test_namespaces_are_listed_and_separate(client):
    body = {"documents": [{"text": "The walnut shelf is in the hr office.", "source": "walnut.md"}]}
    ok(client.post("/api/v1/knowledge/hr/documents", json=body), 201)
    assert {"default", "hr"} <= set(ok(client.get("/api/v1/knowledge/namespaces"))["namespaces"])
    told = retrieve(client, query="walnut shelf", mode="text")
    assert not [each for each in told["chunks"] if "walnut" in each["text"]]
    found = ok(client.post("/api/v1/knowledge/hr/retrieve", json={"query": "walnut shelf"}))
    assert "walnut" in found["chunks"][0]["text"]


def test_document_is_deleted(client):
    body = {"documents": [{"text": "The beech bed is sold.", "source": "beech.md"}]}
    (document,) = ok(client.post("/api/v1/knowledge/default/documents", json=body), 201)["document_ids"]
    gone = ok(client.delete(f"/api/v1/knowledge/default/documents/{document}"))
    assert gone == {"document_id": document, "deleted_chunks": 1}
    problem(client.delete(f"/api/v1/knowledge/default/documents/{document}"), 404, "no-such-document")


def test_one_unreadable_document_fails_the_request_and_the_others_are_there(client):
    body = {"documents": [{"text": "The yew gate is locked.", "source": "yew.md"}, {"text": " ", "source": "nil.md"}]}
    told = problem(client.post("/api/v1/knowledge/default/documents", json=body), 422, "no-text")
    assert [each["status"] for each in told["documents"]] == ["indexed", "skipped"]
    found = retrieve(client, query="yew gate", mode="text")
    assert "yew" in found["chunks"][0]["text"]
