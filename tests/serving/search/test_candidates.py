"""Candidates: all chunks that a search considered, decided as the search decides, each with its reason."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from parquetry.model import Access
from parquetry.serving.search.absences import why_not
from parquetry.serving.search.candidates import candidates_of
from parquetry.serving.search.explanations import Absence, Candidates
from parquetry.serving.search.reranking import Recency, Reranking
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import Settings
from parquetry.storage.search.filters import Caller, Filters
from parquetry.storage.search.metadata_conditions import MetadataComparison
from parquetry.storage.search.searcher import Searcher
from tests.records import row
from tests.storage.shelf import Shelf

QUERY = "oak trees in autumn"
VECTOR = (1.0, 0.5, -0.3, 0.2)
WORDS = ["oak", "ash", "elm", "trees", "in", "autumn", "spring", "winter", "leaves", "roots", "bark"]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Thirty documents of random words, two of them with one text, one hidden, one unreadable, one without a word."""
    shelf = Shelf(tmp_path_factory.mktemp("candidates") / "corpus")
    random = np.random.default_rng(7)
    texts = {f"d{i:02}.md": [" ".join(random.choice(WORDS, 6)) for _ in range(3)] for i in range(28)}
    shelf.publish({**texts, "copy.md": texts["d00.md"], "zebra.md": ["zebra zebra zebra"]})
    secret = ["oak trees in autumn, hidden"]
    shelf.publish({"secret.md": secret}, access=Access("individual", user_id="ada"))
    shelf.publish({"hr.md": ["oak trees in autumn, of personnel"]}, namespace="hr")
    failed = row("broken.md", "", revision=0, status="failed", error="extract/damaged: no text", chunks=0)
    shelf.lake.publish(shelf.lake.snapshot(), [failed], "run-failed")
    return shelf


@pytest.fixture(scope="module")
def reader(shelf):
    settings = {"corpus": {"root": str(shelf.root)}, "search": {"language": "none", "depth": 12}}
    with Reader(Settings.model_validate(settings)) as reader:
        yield reader


def request(**options):
    vector = None if options.get("mode") == "text" else VECTOR
    return SearchRequest(QUERY, **{"k": 4, "vector": vector, **options})


def demanding(reader, **options):
    """Return a request whose threshold leaves out some of its own results, on whatever scale relevance is."""
    plain = request(mode="vector", k=20, **options)
    relevance = sorted(hit.relevance for hit in reader.search(plain).hits)
    return replace(plain, min_relevance=relevance[len(relevance) // 2])


def document(shelf, path):
    (found,) = [each.document_id for each in shelf.rows() if each.path == path]
    return found


REQUESTS = {
    "hybrid": request(),
    "vector": request(mode="vector"),
    "text": request(mode="text"),
    "duplicates": request(duplicates=True, k=9),
    "documents": request(level="document"),
    # The second-best chunk of the best document is in the lists of both sides, but below those that the search took.
    "one-document": replace(request(level="document", k=1), query="trees bark leaves elm"),
    "documents-by-text": request(level="document", mode="text", k=7),
    "all-documents": request(level="document", k=60),
    "diverse": request(look=Reranking(diversify=True)),
    "recent": request(look=Reranking(recency=Recency(30, datetime(2031, 3, 1, tzinfo=UTC)))),
    "deep": request(k=50),
    "caller": request(filters=Filters(caller=Caller("bob")), k=9),
    "context": request(mode="text", context="zebra leaves and roots"),
}


@pytest.mark.parametrize("asked", REQUESTS.values(), ids=REQUESTS)
def test_results_are_those_of_the_search(reader, asked):
    """Two programs decide; they must never differ."""
    hits = reader.search(asked).hits
    found = candidates_of(reader, asked)
    assert [each.chunk_id for each in found.results] == [hit.row["chunk_id"] for hit in hits]
    assert [each.score for each in found.results] == pytest.approx([hit.score for hit in hits])
    assert [each.relevance for each in found.results] == pytest.approx([hit.relevance for hit in hits])
    assert [each.rank for each in found.results] == list(range(1, len(hits) + 1))
    assert hits
    assert len({each.chunk_id for each in found.candidates}) == len(found.candidates) >= len(hits)


def test_results_above_a_threshold_are_those_of_the_search(reader):
    asked = demanding(reader)
    hits = reader.search(asked).hits
    assert [each.chunk_id for each in candidates_of(reader, asked).results] == [hit.row["chunk_id"] for hit in hits]
    assert 0 < len(hits) < 20


@pytest.mark.parametrize("asked", REQUESTS.values(), ids=REQUESTS)
def test_every_candidate_is_a_result_or_has_a_reason(reader, asked):
    for each in candidates_of(reader, asked).candidates:
        assert (each.rank is None) == (each.dropped is not None)
        assert (each.duplicate_of is not None) == (each.dropped in ("duplicate", "same-document"))
        assert each.vector or each.text
        assert asked.mode == "hybrid" or (each.vector is None) == (asked.mode == "text")


def reasons(found):
    return {each.dropped for each in found.candidates if each.dropped}


def test_each_reason_is_given(reader):
    assert reasons(candidates_of(reader, REQUESTS["hybrid"])) >= {"beyond-k"}
    assert "duplicate" in reasons(candidates_of(reader, REQUESTS["deep"]))
    assert "duplicate" not in reasons(candidates_of(reader, REQUESTS["duplicates"]))
    assert "same-document" in reasons(candidates_of(reader, REQUESTS["documents"]))
    assert "diversity" in reasons(candidates_of(reader, REQUESTS["diverse"]))
    assert "threshold" in reasons(candidates_of(reader, demanding(reader)))
    assert "beyond-candidates" in reasons(candidates_of(reader, request(look=REQUESTS["recent"].look, k=2)))


def test_duplicate_names_the_result_that_stands_for_it(reader):
    found = candidates_of(reader, REQUESTS["deep"])
    texts = {each.chunk_id: each for each in found.candidates}
    copies = [each for each in found.candidates if each.dropped == "duplicate"]
    assert len(copies) == 3
    assert all(texts[each.duplicate_of].dropped is None for each in copies)


def test_json_and_back(reader):
    found = candidates_of(reader, REQUESTS["documents"], with_vectors=True)
    told = json.loads(json.dumps(found.as_json()))
    assert Candidates.from_json(told).as_json() == told
    assert found.vectors["model@4"] == pytest.approx(VECTOR)
    assert told["search"]["fusion"] == "convex"
    assert "vectors" not in candidates_of(reader, REQUESTS["text"]).as_json()


# --- why not


def test_result_is_told_with_its_rank(reader):
    hit = reader.search(REQUESTS["hybrid"]).hits[1]
    found = why_not(reader, REQUESTS["hybrid"], hit.row["document_id"])
    assert (found.verdict, found.candidate.rank) == ("found", 2)
    assert found.detail == "it is result 2"
    told = json.loads(json.dumps(found.as_json()))
    assert Absence.from_json(told).as_json() == told


def test_hidden_document_is_answered_like_one_that_does_not_exist(reader, shelf):
    """Only the id that was asked for may differ."""
    asked = replace(REQUESTS["hybrid"], filters=Filters(("default",), caller=Caller("bob")))
    hidden = document(shelf, "secret.md")
    elsewhere = document(shelf, "hr.md")
    missing = "0" * len(hidden)
    answers = [
        json.dumps(why_not(reader, asked, each).as_json()).replace(each, "ID") for each in (hidden, elsewhere, missing)
    ]
    assert len(set(answers)) == 1
    assert json.loads(answers[0])["verdict"] == "no-such-document"
    owner = replace(asked, filters=Filters(("default",), caller=Caller("ada")))
    assert why_not(reader, owner, hidden).verdict in ("found", "beyond-k")


def test_document_of_a_visible_namespace_is_filtered(reader, shelf):
    asked = replace(REQUESTS["hybrid"], filters=Filters(("default",)))
    found = why_not(reader, asked, document(shelf, "hr.md"), sees=lambda _: True)
    assert (found.verdict, found.conditions) == ("filtered", ("namespace: default",))


def test_unreadable_document_is_told_with_its_error(reader, shelf):
    found = why_not(reader, REQUESTS["hybrid"], document(shelf, "broken.md"))
    assert found.verdict == "not-indexed"
    assert "extract/damaged: no text" in found.detail


FILTERS = {
    "tag: policy": Filters(tags=("policy",)),
    "any tag: a, b": Filters(any_tags=("a", "b")),
    "filename: *.pdf": Filters(filename="*.pdf"),
    "media_type: application/pdf": Filters(media_type="application/pdf"),
    "source: other": Filters(source="other"),
    "origin: other": Filters(origin="other"),
    "user_id: ada": Filters(user_id="ada"),
    "since: 2040-01-01 00:00:00+00:00": Filters(since=datetime(2040, 1, 1, tzinfo=UTC)),
    "until: 2000-01-01 00:00:00+00:00": Filters(until=datetime(2000, 1, 1, tzinfo=UTC)),
    "where: size < 0": Filters(where="size < 0"),
    "metadata editor: Ada": Filters(metadata=(("editor", "Ada"),)),
    "metadata year gt 2020": Filters(comparisons=(MetadataComparison("year", "gt", (2020,)),)),
    "type: entries": Filters(what="entries"),
}


@pytest.mark.parametrize(("condition", "filters"), FILTERS.items(), ids=FILTERS)
def test_each_filter_that_leaves_it_out_is_named(reader, shelf, condition, filters):
    both = replace(filters, namespaces=("default",))
    found = why_not(reader, replace(REQUESTS["text"], filters=both), document(shelf, "d01.md"))
    assert (found.verdict, found.conditions) == ("filtered", (condition,))


def test_document_that_no_side_found_is_told_with_its_places(reader, shelf):
    found = why_not(reader, request(mode="text"), document(shelf, "zebra.md"))
    assert (found.verdict, found.text, found.vector) == ("no-candidate", None, None)
    assert "has none of them" in found.detail
    ranks = {}
    for path in (f"d{i:02}.md" for i in range(28)):
        found = why_not(reader, REQUESTS["vector"], document(shelf, path))
        ranks[found.vector.rank] = found.verdict
    assert {"found", "beyond-k", "no-candidate"} <= set(ranks.values())
    assert max(ranks) > 20


def test_places_are_those_of_the_whole_lists(reader, shelf):
    """A list as long as the corpus holds every document where `why_not` says it is."""
    everything = reader.search(request(mode="vector", k=1000, duplicates=True)).hits
    scores = [hit.score for hit in everything]
    for path in ("d05.md", "d20.md", "zebra.md"):
        own = max(hit.score for hit in everything if hit.row["path"] == path)
        found = why_not(reader, REQUESTS["vector"], document(shelf, path))
        assert found.vector.score == pytest.approx(own, abs=1e-6)
        assert found.vector.rank == 1 + sum(score > own for score in scores if score != own)


def test_each_loss_is_the_verdict(reader, shelf):
    found = candidates_of(reader, REQUESTS["deep"])
    copy = next(each for each in found.candidates if each.dropped == "duplicate")
    alone = replace(REQUESTS["deep"], filters=Filters(filename="copy.md"))
    assert why_not(reader, alone, document(shelf, "copy.md")).verdict == "found"
    assert copy.duplicate_of in why_not(reader, REQUESTS["deep"], copy.document_id).detail or copy.rank is None
    asked = demanding(reader, level="document")
    lost = next(each for each in candidates_of(reader, asked).candidates if each.dropped == "threshold")
    found = why_not(reader, asked, lost.document_id)
    assert found.verdict == "threshold"
    assert "is below" in found.detail


def test_explanation_ranks_nothing_again_that_was_just_ranked(shelf, monkeypatch):
    """The page asks for both; what it asks with decides, and numbers of chunks come with the candidates."""
    ranked = []

    def noted(searcher, query, *given):
        ranked.append(query)
        return text(searcher, query, *given)

    text = Searcher._text
    monkeypatch.setattr(Searcher, "_text", noted)
    settings = {"corpus": {"root": str(shelf.root)}, "search": {"language": "none", "depth": 12}}
    with Reader(Settings.model_validate(settings)) as reader, Reader(Settings.model_validate(settings)) as fresh:
        response = reader.search(request())
        found = candidates_of(reader, request())
        assert ranked == [QUERY]
        with Reader(Settings.model_validate(settings)) as other:
            assert found.as_json() == candidates_of(other, request()).as_json()
        assert [hit.row["chunk_id"] for hit in response.hits] == [each.chunk_id for each in found.results]
        assert {each.chunk_id: found.numbers[each.chunk_id] for each in found.results} == {
            hit.row["chunk_id"]: hit.row["chunk_index"] for hit in response.hits
        }
        # As deep as the one before.
        by_meaning = request(mode="vector", k=2)
        assert candidates_of(reader, by_meaning).as_json() == candidates_of(fresh, by_meaning).as_json()
        ranked.clear()
        changed = [
            replace(request(), query="ash leaves"),
            replace(request(), vector=(0.1, 0.2, 0.3, 0.4)),
            request(mode="text"),
            request(k=40),
        ]
        for each in changed:
            assert candidates_of(reader, each).as_json() == candidates_of(fresh, each).as_json()
        assert len(ranked) == 2 * len(changed)
