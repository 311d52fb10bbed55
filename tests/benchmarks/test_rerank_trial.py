"""The trial starts from what a hybrid search ranks, and its features say what they are called."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from benchmarks import rerank_trial
from benchmarks.rerank_corpus import Corpus, Judged
from benchmarks.rerank_features import FEATURES, candidates, expansion, ranked, spread
from parquetry.ranking.evaluation import read_dataset
from parquetry.serving.cli.eval_command import index_dataset
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import parse_settings

pytestmark = pytest.mark.slow

TEXTS = {
    "apart": ("Notes", "The oil was dear, and after a long and cold winter the oak was felled."),
    "next": ("Notes", "Apply oak oil thinly, then let it dry for a whole day on the shelf."),
    "above": ("Oak oil", "Two thin coats are enough for a table that stands inside all year."),
    "other": ("Cranes", "The cranes of the harbour lift crates all day and all night long."),
}
QUERIES = {"q1": "oak oil", "q2": "cranes of the harbour"}
ANSWERS = {"q1": "next", "q2": "other"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collections") / "woods"
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": id_, "title": title, "text": text} for id_, (title, text) in TEXTS.items()]
    queries = [{"_id": id_, "text": text} for id_, text in QUERIES.items()]
    for name, records in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)), "utf-8")
    judged = "".join(f"{query}\t{document}\t1\n" for query, document in ANSWERS.items())
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", "utf-8")
    return folder


@pytest.fixture(scope="module")
def woods(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Reader, Corpus]]:
    settings = parse_settings({"extraction": {"workers": 1}}, "test")
    indexed = index_dataset(read_dataset(folder), settings, tmp_path_factory.mktemp("woods"), Observer())
    questions = [Judged(text, lambda chunks: float(len(chunks)), lambda chunk: 0.0) for text in QUERIES.values()]
    with closing(Reader(indexed.settings)) as reader:
        yield reader, Corpus("woods", reader, questions)


def feature(corpus: Corpus, name: str) -> dict[str, float]:
    """Return the feature of the candidates of the first question, by document."""
    found = candidates(corpus, corpus.asked[0])
    numbers = [int(corpus.chunks[place]["filename"].partition(".")[0]) for place in found.places]
    return dict(zip([list(TEXTS)[number] for number in numbers], FEATURES[name](found).tolist(), strict=True))


def test_candidates_are_those_of_the_search_with_its_scores(woods):
    reader, corpus = woods
    for text, asked in zip(QUERIES.values(), corpus.asked, strict=True):
        hits = reader.search(SearchRequest(text, mode="hybrid", k=10)).hits
        found = candidates(corpus, asked)
        assert found.fused == pytest.approx([hit.score for hit in hits], abs=1e-6)
        assert [corpus.chunks[place]["filename"] for place in found.places] == [hit.row["filename"] for hit in hits]
        assert len(hits) == len(TEXTS)


def test_neighbours_count_as_neighbours_and_what_is_far_apart_does_not(woods):
    _, corpus = woods
    bigrams, windows, proximity = (feature(corpus, name) for name in ("bigrams", "windows", "proximity"))
    assert bigrams["next"] > bigrams["apart"] == bigrams["other"] == 0
    assert windows["apart"] > 0 < windows["above"]
    assert windows["other"] == 0
    assert proximity["next"] > proximity["apart"] > proximity["other"] == 0


def test_headings_and_coverage_are_shares_of_the_question(woods):
    _, corpus = woods
    assert feature(corpus, "headings") == pytest.approx({"apart": 0, "next": 0, "above": 1, "other": 0})
    assert feature(corpus, "coverage") == pytest.approx({"apart": 1, "next": 1, "above": 1, "other": 0})


def test_expansion_is_of_the_words_of_the_first_results(woods):
    _, corpus = woods
    found = candidates(corpus, corpus.asked[0])
    words = expansion(found, first=1)
    assert sum(words.values()) == pytest.approx(1)
    assert words.keys() <= corpus.counts[found.places[0]].keys()
    assert not words.keys() & {"the", "of", "crane"}


def test_features_spread_from_0_to_1_and_order_by_the_best(woods):
    _, corpus = woods
    found = candidates(corpus, corpus.asked[0])
    assert spread(np.array([2.0, 4.0, 3.0])).tolist() == [0, 1, 0.5]
    assert spread(np.array([2.0, 2.0])).tolist() == [0, 0]
    assert ranked(found, -found.fused).tolist() == found.places[::-1].tolist()


def test_the_trial_writes_every_feature_and_model_with_conditions(folder: Path, tmp_path: Path):
    result = rerank_trial.main([str(folder), "--results", str(tmp_path)])
    assert json.loads((tmp_path / "rerank-trial.json").read_text("utf-8")) == result
    assert result["conditions"]["packages"]["duckdb"]
    assert result["questions"] == {"woods": 2, "made reports": 60}
    assert set(result["as shipped"]) == {"woods", "made reports"}
    assert {f"{name} 0.1" for name in FEATURES} <= result["trials"].keys()
    assert {f"linear: {label}" for label in rerank_trial.MODELS} <= result["trials"].keys()
    assert set(result["chosen without"]) == {"woods", "made reports"}
    assert all(weight >= 0 for weight in result["weights trained on all"]["all"].values())


def test_setting_is_chosen_by_the_other_collections_and_none_of_them_loses():
    shipped = {"one": 0.5, "two": 0.5, "three": 0.5}
    rows = {
        "fits one": {"one": 0.9, "two": 0.5, "three": 0.5},
        "harms two": {"one": 0.5, "two": 0.49, "three": 0.9},
        "helps three": {"one": 0.4, "two": 0.497, "three": 0.6},
        "helps three less": {"one": 0.5, "two": 0.5, "three": 0.55},
    }
    questions = {"one": 10, "two": 20, "three": 30}
    assert rerank_trial.chosen_without("one", shipped, rows, questions) == {"setting": "helps three", "change": -0.1}
    assert rerank_trial.chosen_without("two", shipped, rows, questions) == {"setting": "harms two", "change": -0.01}
    assert rerank_trial.chosen_without("three", shipped, rows, questions) == {"setting": "fits one", "change": 0.0}
    assert rerank_trial.chosen_without("one", shipped, {"harms two": rows["harms two"]}, questions)["setting"] is None
