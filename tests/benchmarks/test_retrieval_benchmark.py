"""The sweep ranks as the search does without changes, and otherwise as the changed settings require."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import retrieval, retrieval_peer
from benchmarks.retrieval_sweep import Collection, Keywords, without_stop_words
from parquetry.ranking.evaluation import Dataset, read_dataset
from parquetry.serving.cli.eval_command import index_dataset
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import parse_settings

pytestmark = pytest.mark.slow

TEXTS = {
    "crane": "# Cranes\n\nThe cranes of the harbour lift crates, and crates are lifted by cranes all day.",
    "glue": "Glue is heated in a water bath. Order SR-2023-052 names the bath.",
    "oak": "Oak is oiled twice, a day apart; the oiled oak dries on the shelf.",
    "shelf": "A shelf of pine holds the crates of the harbour.",
}
QUERIES = {"q1": "Which crane lifts the crates? The crane!", "q2": "sr-2023-052", "q3": "oiling the oak"}
ANSWERS = {"q1": "crane", "q2": "glue", "q3": "oak"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collections") / "harbour"
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", TEXTS), ("queries", QUERIES)):
        lines = [json.dumps({"_id": id_, "title": "", "text": text}) for id_, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), "utf-8")
    judged = "".join(f"{query}\t{document}\t1\n" for query, document in ANSWERS.items())
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", "utf-8")
    return folder


@pytest.fixture(scope="module")
def harbour(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Reader, Dataset, Collection]]:
    dataset = read_dataset(folder)
    settings = parse_settings({"extraction": {"workers": 1}}, "test")
    indexed = index_dataset(dataset, settings, tmp_path_factory.mktemp("harbour"), Observer())
    with closing(Reader(indexed.settings)) as reader:
        yield reader, dataset, Collection(reader, dataset, indexed.settings)


@pytest.mark.parametrize("mode", ["text", "vector"])
def test_unchanged_settings_give_the_scores_of_the_search(harbour, mode):
    reader, dataset, collection = harbour
    lists = collection.by_keywords(Keywords()) if mode == "text" else collection.by_vectors()
    for query, ranked in zip(dataset.queries.values(), lists, strict=True):
        hits = reader.search(SearchRequest(query, mode=mode, k=10)).hits
        assert [score for _, score in ranked] == pytest.approx([hit.score for hit in hits], rel=1e-4)
        assert len(ranked) > 0


def _scores(collection: Collection, **changed: object) -> list[list[float]]:
    return [[score for _, score in ranked] for ranked in collection.by_keywords(Keywords(**changed))]


def test_a_word_that_a_query_repeats_counts_once_if_k3_is_zero(harbour):
    """`crane` occurs twice in the first query only."""
    _, _, collection = harbour
    once, again = _scores(collection, k3=0.0), _scores(collection)
    assert once[0][0] < again[0][0]
    assert once[1:] == again[1:]


def test_without_identities_a_chunk_has_the_score_of_its_own_words(harbour):
    """The opening of a short text is all of it."""
    _, _, collection = harbour
    assert _scores(collection, identity=0.0)[1][0] < _scores(collection)[1][0]


def test_without_stems_an_inflection_is_another_word(harbour):
    """`oiling` is not `oiled`; only `oak` is left of the query."""
    _, _, collection = harbour
    assert _scores(collection, stems=False)[2][0] < _scores(collection)[2][0]


def test_without_wholes_an_identifier_is_its_parts(harbour):
    _, _, collection = harbour
    assert _scores(collection, wholes=False)[1][0] < _scores(collection)[1][0]


def test_stop_words_find_chunks_when_they_are_searched_for(harbour):
    """Every chunk except the answer contains `the` or a word of the third query."""
    _, _, collection = harbour
    assert len(_scores(collection)[2]) == 1
    assert len(_scores(collection, stop_words=True)[2]) == 4


def test_a_query_of_stop_words_stays_whole():
    assert without_stop_words("Who is it?") == "Who is it?"
    assert without_stop_words("How is the glue heated?") == "glue heated?"


def test_the_benchmark_writes_modes_and_sweep_with_conditions(folder: Path, tmp_path: Path):
    result = retrieval.main([str(folder), "--results", str(tmp_path)])
    assert json.loads((tmp_path / "retrieval.json").read_text("utf-8")) == result
    assert result["conditions"]["packages"]["duckdb"]
    measured = result["modes"]["wordllama"]["harbour"]
    assert measured["text"]["ndcg"] == 1.0
    sides = {row["setting"]: row["ndcg"]["harbour"] for row in result["sweep"] if row["table"] == "sides"}
    assert sides == {mode: pytest.approx(measured[mode]["ndcg"]) for mode in ("vector", "text", "hybrid")}
    assert {row["table"] for row in result["sweep"]} >= {"convex", "rrf", "keywords, hybrid", "vectors, vector"}


def test_the_usual_combination_is_measured_with_conditions(folder: Path, tmp_path: Path):
    result = retrieval_peer.main([str(folder), "--results", str(tmp_path)])
    assert json.loads((tmp_path / "retrieval-peer.json").read_text("utf-8")) == result
    assert result["conditions"]["packages"]["onnxruntime"]
    measured = result["ndcg"]["harbour"]
    # Every question has a word that its answer alone has.
    assert measured["text"] == 1.0
    assert 0.5 < measured["hybrid"] <= 1.0
