"""Reranking and diversity: the reranker's input, the scores after it, and the hits that are dropped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parquetry.errors import SettingsError
from parquetry.serving.search.reranking import RerankedHits, Reranking
from parquetry.settings.llm import LlmSettings
from parquetry.settings.sections import SearchSettings, Settings
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Hit, Searcher
from tests.rerank.tiny_cross_encoder import build_folder, probability
from tests.servers.chat_server import ChatServer, said
from tests.storage.shelf import EMBEDDER, Shelf

EAST, NEAR_EAST, NORTH, UP, WEST = (1, 0, 0, 0), (0.9, 0.436, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (-1, 0, 0, 0)
TEXTS = ["walnut lunch", "walnut kiln", "walnut kiln dry", "walnut", "walnut menu"]
QUERY = np.array([0.6, 0.46, 0.45, 0.0], np.float32)


class Found:
    """Candidates of a corpus, and the index that gave them."""

    def __init__(self, shelf: Shelf, connection: Any) -> None:
        self._shelf = shelf
        self.session = connection

    def candidates(self, k: int = 12) -> list[Hit]:
        searcher = Searcher(self.session, Filters(), self._shelf.settings)
        return searcher.search("walnut", {EMBEDDER: QUERY}, "vector", k)

    def look(self, *given: Any, **what: bool) -> list[Hit]:
        return list(self.looked(*given, **what).hits)

    def looked(
        self, k: int = 3, hits: Sequence[Hit] | None = None, settings: Settings | None = None, **what: bool
    ) -> RerankedHits:
        hits = self.candidates() if hits is None else hits
        return Reranking(**what).apply(hits, "walnut", k, self.session, settings or Settings())


@pytest.fixture
def found(tmp_path: Path) -> Iterator[Found]:
    """Publish texts that rank by vector: walnut kiln, walnut lunch, walnut kiln dry, walnut, walnut menu."""
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"a.md": TEXTS}, vectors=[EAST, NEAR_EAST, NORTH, UP, WEST])
    with shelf.index() as connection:
        yield Found(shelf, connection)


def texts(hits: Sequence[Hit]) -> list[str]:
    return [hit.row["text"] for hit in hits]


def encoder(folder: Path) -> Settings:
    return Settings(search=SearchSettings(rerank=f"onnx:{build_folder(folder / 'model')}"))


@pytest.mark.parametrize(
    ("look", "wanted"),
    [
        (Reranking(), 5),
        (Reranking(rerank=True), 15),
        (Reranking(diversify=True), 15),
        (Reranking(rerank=True, diversify=True), 15),
    ],
)
def test_three_candidates_are_wanted_for_every_hit_if_there_is_a_second_look(look: Reranking, wanted: int) -> None:
    assert look.candidates(5) == wanted


def test_without_a_second_look_the_best_candidates_stay_as_they_are(found: Found) -> None:
    hits = found.candidates()
    assert found.look(2, hits) == hits[:2]


def test_reranked_hits_are_ordered_and_scored_anew_and_keep_their_first_scores(found: Found, tmp_path: Path) -> None:
    hits = found.candidates()
    assert texts(hits) == ["walnut kiln", "walnut lunch", "walnut kiln dry", "walnut", "walnut menu"]
    reranked = found.look(3, hits, encoder(tmp_path), rerank=True)
    assert texts(reranked) == ["walnut kiln dry", "walnut kiln", "walnut"]
    before = {hit.row["text"]: hit for hit in hits}
    for hit in reranked:
        expected = probability("walnut", f"[UNK] {hit.row['text']}")
        assert hit.score == hit.scores["rerank"] == pytest.approx(expected, rel=1e-5)
        assert hit.scores["vector"] == before[hit.row["text"]].score
        assert hit.ranks == before[hit.row["text"]].ranks


def test_equally_good_candidates_keep_their_order(found: Found) -> None:
    judged = json.dumps({"ranking": [{"n": n, "score": 0.5} for n in (1, 2, 3, 4, 5)]})
    with ChatServer([said(judged)]) as server:
        settings = Settings(search=SearchSettings(rerank="llm"), llm=LlmSettings(model="m", base_url=server.url))
        assert texts(found.look(5, None, settings, rerank=True)) == texts(found.candidates())


def test_the_reranker_reads_the_headings_that_a_chunk_stands_under(found: Found) -> None:
    judged = json.dumps({"ranking": [{"n": n, "score": n / 5} for n in (1, 2, 3, 4, 5)]})
    with ChatServer([said(judged)]) as server:
        settings = Settings(search=SearchSettings(rerank="llm"), llm=LlmSettings(model="m", base_url=server.url))
        hits = found.look(1, None, settings, rerank=True)
    asked = json.loads(server.bodies[0]["messages"][1]["content"])
    assert asked["question"] == "walnut"
    assert [each["text"] for each in asked["passages"]] == [f"Heading\n{text}" for text in texts(found.candidates())]
    assert texts(hits) == ["walnut menu"]


def test_a_heading_that_the_text_repeats_is_read_once(found: Found) -> None:
    (hit, *_) = found.candidates()
    hit = Hit(hit.score, hit.scores, {**hit.row, "headings": ["walnut", "Trees"]})
    with ChatServer([said('{"ranking": [{"n": 1, "score": 1}]}')]) as server:
        settings = Settings(search=SearchSettings(rerank="llm"), llm=LlmSettings(model="m", base_url=server.url))
        found.look(1, [hit], settings, rerank=True)
    (passage,) = json.loads(server.bodies[0]["messages"][1]["content"])["passages"]
    assert passage["text"] == "Trees\nwalnut kiln"


def test_a_hit_that_says_what_a_better_one_said_waits(found: Found) -> None:
    hits = found.candidates()
    chosen = found.look(5, hits, diversify=True)
    assert texts(chosen) == ["walnut kiln", "walnut", "walnut kiln dry", "walnut lunch", "walnut menu"]
    assert sorted(chosen, key=lambda hit: -hit.score) == hits


def test_a_copy_of_a_text_comes_after_everything_else_however_good_it_is(found: Found) -> None:
    best, *others = found.candidates()
    copy = Hit(best.score, best.scores, {**best.row, "chunk_id": "copy"})
    chosen = found.look(6, [best, copy, *others], diversify=True)
    assert [hit.row["chunk_id"] for hit in chosen][-1] == "copy"
    assert texts(chosen[:-1]) == texts(found.look(5, [best, *others], diversify=True))


def test_candidates_are_reranked_before_they_are_made_to_differ(found: Found, tmp_path: Path) -> None:
    chosen = found.look(2, None, encoder(tmp_path), rerank=True, diversify=True)
    assert texts(chosen)[0] == "walnut kiln dry"
    assert "rerank" in chosen[0].scores


def test_vectors_of_different_models_are_never_compared(tmp_path: Path) -> None:
    """The second model's vector equals the first one's best in its numbers, but does not repeat it."""
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"a.md": TEXTS[:3]}, vectors=[EAST, EAST, UP])
    shelf.publish({"b.md": ["walnut menu"]}, vectors=[EAST], embedder="other@4", namespace="other")
    with shelf.index() as connection:
        rows = {
            hit.row["text"]: hit.row
            for hit in Searcher(connection, Filters(), shelf.settings).search("walnut", {}, "text", 9)
        }
        scores = {"walnut lunch": 1.0, "walnut kiln": 0.99, "walnut menu": 0.98, "walnut kiln dry": 0.0}
        hits = [Hit(score, {}, rows[text]) for text, score in scores.items()]
        chosen = Reranking(diversify=True).apply(hits, "walnut", 3, connection, Settings()).hits
    assert texts(chosen) == ["walnut lunch", "walnut menu", "walnut kiln"]


@pytest.mark.parametrize("what", [{"rerank": True}, {"diversify": True}], ids=str)
def test_nothing_found_stays_nothing(found: Found, tmp_path: Path, what: dict[str, bool]) -> None:
    assert found.look(3, [], encoder(tmp_path), **what) == []


def test_without_a_configured_reranker_the_message_says_what_to_set(found: Found) -> None:
    with pytest.raises(SettingsError, match=r'set rerank in \[search\] to "onnx:<folder>".* "llm"'):
        found.look(rerank=True)
