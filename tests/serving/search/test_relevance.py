"""Relevance on a small corpus: thresholds, modes, batches, permissions; vectors and contexts of a request."""

import json
from dataclasses import replace

import numpy as np
import pytest

from parquetry.embed.registry import open_embedder
from parquetry.errors import SettingsError
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.answers import Shown, answer
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import override, parse_settings
from parquetry.storage.search.filters import Caller, Filters
from parquetry.tasks.engine.base import DirectEngine
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

MODES = ["hybrid", "vector", "text"]
ANSWERED = "How long is parental leave for new parents?"
UNANSWERED = "Which goalkeeper saved the penalty in the world cup final?"
TEXTS = {
    "leave.md": "Parental leave: new parents stay at home for fourteen months.",
    "oil.md": "Two thin coats of oil on oak, a day apart.",
    "kiln.md": "The kiln dries walnut boards in three weeks.",
    "safety.md": "Ear protection is worn beside the planer, and the fan is switched on.",
    "holiday.md": "Thirty days of holiday a year; holiday is requested two weeks before.",
    "travel.md": "Travel expenses are paid when receipts arrive within a month.",
}


@pytest.fixture(scope="module")
def firm(tmp_path_factory):
    shop = Workshop(tmp_path_factory.mktemp("firm"))
    for name, text in TEXTS.items():
        shop.write(name, text)
    shop.refresh()
    return shop


def found(reader, query, mode="hybrid", **options):
    return reader.search(SearchRequest(query, mode, **options)).hits


# --- thresholds


@pytest.mark.parametrize("mode", MODES)
def test_answer_stays_at_a_threshold_that_leaves_nothing_of_a_question_without_one(firm, mode):
    reader = firm.reader()
    best, *_ = found(reader, ANSWERED, mode, min_relevance=0.3)
    assert best.row["filename"] == "leave.md"
    assert all(0.3 <= hit.relevance <= 1 for hit in found(reader, ANSWERED, mode, min_relevance=0.3))
    assert found(reader, UNANSWERED, mode, min_relevance=0.3) == ()


def test_threshold_leaves_the_order_and_the_scores(firm):
    reader = firm.reader()
    all_hits = found(reader, ANSWERED)
    assert [hit.score for hit in all_hits] == sorted((hit.score for hit in all_hits), reverse=True)
    assert found(reader, ANSWERED, min_relevance=0.5) == tuple(hit for hit in all_hits if hit.relevance >= 0.5)


def test_hit_of_one_side_has_the_evidence_of_both(firm):
    hits = found(firm.reader(), "parental fan walnut", k=6)
    assert any("text" not in hit.scores for hit in hits)
    for hit in hits:
        assert set(hit.evidence) == {"cosine", "coverage", "amount"}
        assert hit.scores.get("vector", hit.evidence["cosine"]) == pytest.approx(hit.evidence["cosine"])
        assert (hit.evidence["coverage"] > 0) == ("text" in hit.scores)


@pytest.mark.parametrize("mode", MODES)
def test_batch_tells_what_single_searches_tell(firm, mode):
    requests = [SearchRequest(query, mode) for query in (ANSWERED, UNANSWERED, "oak oil", "")]
    batch = [response.hits for response in firm.reader().search_all(requests)]
    assert batch == [firm.reader().search(request).hits for request in requests]


def test_json_and_explanation_tell_relevance_and_evidence(firm):
    reader = firm.reader()
    response = reader.search(SearchRequest(ANSWERED))
    told = answer(reader, response, Shown(explain=True), firm.settings.search).as_json()
    first = told["results"][0]
    assert list(first).index("relevance") == list(first).index("score") + 1
    assert 0.3 < first["relevance"] < 1
    assert set(first["evidence"]) == {"cosine", "coverage", "amount"}
    assert told["explanation"]["uncalibrated"] == []


def test_embedder_without_a_calibration_has_its_cosine_and_says_so(firm, monkeypatch):
    monkeypatch.setattr("parquetry.serving.search.assessment.calibrations_of", lambda _: {})
    response = firm.reader().search(SearchRequest(ANSWERED))
    for hit in response.hits:
        assert hit.relevance == pytest.approx(min(1, max(0, hit.evidence["cosine"])), abs=1e-6)
    assert response.ranking.explanation["uncalibrated"] == ["wordllama:l2-supercat/1@256"]


def test_calibration_of_the_settings_holds(firm, tmp_path):
    curve = {"intercept": 5.0, "weights": {}}
    curves = {"hybrid": curve, "vector": curve, "text": curve}
    place = tmp_path / "calibration.json"
    each = {"embedder": "wordllama:l2-supercat/1@256", "curves": curves, "measured": {}}
    place.write_text(json.dumps({"format": 1, "calibrations": [each]}))
    settings = override(firm.settings, {"search": {"calibration": str(place)}})
    assert {round(hit.relevance, 2) for hit in found(Reader(settings), ANSWERED)} == {0.99}
    with pytest.raises(SettingsError, match="parquetry calibrate"):
        found(Reader(override(firm.settings, {"search": {"calibration": str(tmp_path / "none")}})), ANSWERED)


# --- permissions


def test_documents_that_a_caller_may_not_see_change_no_relevance(workshop):
    for name, text in TEXTS.items():
        workshop.write(name, text)
    workshop.refresh()
    asked = SearchRequest(ANSWERED, filters=Filters(caller=Caller("ada")), k=10)

    def told():
        reader = workshop.reader()
        return [
            [(hit.row["filename"], hit.relevance, dict(hit.evidence)) for hit in reader.search(request).hits]
            for request in (replace(asked, mode=mode) for mode in MODES)
        ]

    before = told()
    for number in range(30):
        workshop.write(f"../hidden/{number}.md", f"Leave of goalkeepers and of new parents, number {number}.")
    values = workshop.settings.model_dump()
    hidden = {"name": "hidden", "uri": str(workshop.root / "hidden"), "visibility": "individual", "user_id": "mallory"}
    values["source"] = [*values["source"], hidden]
    run_refresh(Request(parse_settings(values, "test")), DirectEngine(), Observer())
    assert len(workshop.reader().search(replace(asked, filters=Filters(), k=50)).hits) > 30
    assert told() == before


# --- vectors and contexts


def test_search_by_a_vector_needs_no_query(firm):
    reader = firm.reader()
    settings = firm.settings
    (vector,) = open_embedder(settings.corpus.embedder, settings.embedding).embed_queries([ANSWERED])
    own = reader.search(SearchRequest(vector=tuple(map(float, vector)), mode="vector")).hits
    assert own == found(reader, ANSWERED, "vector")
    both = SearchRequest(UNANSWERED, vector=tuple(map(float, vector)), mode="hybrid", k=1)
    assert reader.search(both).hits[0].row["filename"] == "leave.md"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param(SearchRequest(vector=(1.0, 2.0), mode="vector"), "has 2 dimensions.*\\(256\\)", id="dimension"),
        pytest.param(SearchRequest(vector=(0.0,) * 256, mode="vector"), "at least one of them not 0", id="zeros"),
        pytest.param(SearchRequest(vector=(float("nan"),) * 256, mode="vector"), "finite numbers", id="nan"),
        pytest.param(SearchRequest("oak", vector=(1.0,) * 256, mode="text"), "compares no vectors", id="text"),
    ],
)
def test_vector_that_cannot_be_searched_by_is_refused(firm, request_, message):
    with pytest.raises(SettingsError, match=message):
        firm.reader().search(request_)


@pytest.mark.parametrize("mode", MODES)
def test_context_gives_a_question_of_stop_words_its_subject(firm, mode):
    reader = firm.reader()
    hits = found(reader, "And what about that?", mode, context="How is walnut dried in the kiln?", k=1)
    assert hits[0].row["filename"] == "kiln.md"


@pytest.mark.parametrize("mode", MODES)
def test_question_weighs_more_than_its_context(firm, mode):
    reader = firm.reader()
    hits = found(reader, "How long is the parental leave of new parents?", mode, context=TEXTS["kiln.md"] * 20, k=1)
    assert hits[0].row["filename"] == "leave.md"


def test_context_is_part_of_what_an_answer_depends_on(firm):
    reader = firm.reader()
    plain, asked = SearchRequest("How long?"), SearchRequest("How long?", context="drying of walnut in a kiln")
    assert reader.search(plain).hits != reader.search(asked).hits
    assert reader.search(replace(asked)).cached
    (vector,) = open_embedder(firm.settings.corpus.embedder, firm.settings.embedding).embed_queries(["oak"])
    mixed = reader.search(replace(asked, mode="vector", vector=tuple(map(float, vector)))).hits
    assert np.all([hit.relevance is not None for hit in mixed])
