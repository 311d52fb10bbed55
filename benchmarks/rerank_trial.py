"""Hybrid search ranked again by what is known about its candidates: each feature alone, and a linear model over them.

    python -m benchmarks.rerank_trial CRANFIELD VASWANI TAU2_BANKING [--filings FINANCEBENCH_DEV]

Each FOLDER is a collection in BEIR format, measured by nDCG@10 of documents. The made annual reports
(`benchmarks/filings_made.py`), and the filings if they are given, are measured by the reciprocal rank of the first
answer among 100 chunks. The linear model that ranks a collection is trained on the other ones.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.conditions import conditions, write_result
from benchmarks.filings_made import Question, write_reports
from benchmarks.rerank_corpus import Corpus, Floats, Judged
from benchmarks.rerank_features import DEPTH, FEATURES, Candidates, candidates, expansion, ranked, spread
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.ranking.evaluation import Dataset, ndcg, read_dataset
from parquetry.ranking.relevance_fit import fit_logistic
from parquetry.serving.cli.eval_command import index_dataset
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import parse_settings
from parquetry.tasks.engine.base import DirectEngine

PACKAGES = ("parquetry", "duckdb", "wordllama", "PyStemmer", "numpy", "pypdfium2")
SHARES = (0.05, 0.1, 0.2)
"""of a feature, in addition to the score of the search"""
FEEDBACK = (0.25, 0.5, 1.0)
"""weight of the first results beside the question when it is asked again"""
MOST_LOST = 0.005
"""loss of a collection that rules a setting out"""
FIRST = 5
"""results whose mean vector the question is moved towards"""
MODELS: Mapping[str, Sequence[str]] = {
    "both lists": ("vector list", "keyword list"),
    "both lists, all scores": ("vector list", "keyword list", "cosine of all", "BM25 of all"),
    "without positions in the text": tuple(
        name for name in FEATURES if name not in ("bigrams", "windows", "proximity")
    ),
    "all": tuple(FEATURES),
}
"""features of each linear model"""


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="parquetry-rerank-trial-") as scratch:
        trials = [Trial(corpus) for corpus in _corpora(options, Path(scratch))]
    shipped = {trial.name: trial.measure(trial.found) for trial in trials}
    rows = {setting: {trial.name: measure(trial) for trial in trials} for setting, measure in _settings()}
    questions = {trial.name: len(trial.corpus.questions) for trial in trials}
    chosen = {name: chosen_without(name, shipped, rows, questions) for name in shipped}
    rows |= {f"linear: {label}": _left_out(trials, names) for label, names in MODELS.items()}
    _print(shipped, rows)
    result = {
        "conditions": conditions(PACKAGES),
        "questions": questions,
        "as shipped": shipped,
        "trials": rows,
        "chosen without": chosen,
        "weights trained on all": {label: _weights(trials, names) for label, names in MODELS.items()},
    }
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


class Trial:
    """A corpus with the candidates of its questions, and their features."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.name = corpus.name
        self.found = [candidates(corpus, asked) for asked in corpus.asked]
        self.features = {name: [spread(feature(found)) for found in self.found] for name, feature in FEATURES.items()}
        """name -> float64[candidates] for each question, 0 to 1"""

    def measure(self, found: Sequence[Candidates]) -> float:
        """Return the quality of candidates in their order."""
        return round(self.corpus.measure([each.places for each in found]), 4)

    def ranked_by(self, scores: Sequence[Floats]) -> float:
        """Return the quality of the candidates of each question by scores."""
        orders = [ranked(found, each) for found, each in zip(self.found, scores, strict=True)]
        return round(self.corpus.measure(orders), 4)

    def matrices(self, names: Sequence[str]) -> Iterator[Floats]:
        """Yield float64[candidates, features] of each question."""
        yield from (np.column_stack(each) for each in zip(*(self.features[name] for name in names), strict=True))

    def pairs(self, names: Sequence[str]) -> tuple[Floats, Floats]:
        """Return the differences of right and wrong candidates, and the weight of each, by which questions count alike.

        Returns:
            float64[pairs, features], float64[pairs].
        """
        differences, weights = [], []
        for question, found, matrix in zip(self.corpus.questions, self.found, self.matrices(names), strict=True):
            grades = np.array([question.grade(self.corpus.chunks[place]) for place in found.places])
            right, wrong = np.flatnonzero(grades > 0), np.flatnonzero(grades <= 0)
            if len(right) and len(wrong):
                apart = (matrix[right][:, None] - matrix[wrong][None]).reshape(-1, len(names))
                differences.append(apart)
                weights.append(np.full(len(apart), 1 / len(apart)))
        joined = np.concatenate(weights)
        return np.concatenate(differences), joined / joined.sum()


# --- trials


def _settings() -> Iterator[tuple[str, Callable[[Trial], float]]]:
    for name in FEATURES:
        for share in SHARES:
            yield f"{name} {share:g}", partial(_added, name=name, share=share)
    for weight in FEEDBACK:
        yield f"asked again, Rocchio {weight:g}", partial(_rocchio, weight=weight)
        yield f"asked again, RM3 {weight:g}", partial(_rm3, weight=weight)


def _added(trial: Trial, name: str, share: float) -> float:
    pairs = zip(trial.found, trial.features[name], strict=True)
    return trial.ranked_by([found.fused + share * feature for found, feature in pairs])


def _rocchio(trial: Trial, weight: float) -> float:
    """Search again with the question's vector moved towards the first results (Rocchio 1971)."""
    vectors = trial.corpus.vectors
    again = []
    for asked, found in zip(trial.corpus.asked, trial.found, strict=True):
        moved = asked.vector + weight * vectors[found.places[:FIRST]].mean(axis=0)
        again.append(candidates(trial.corpus, asked, cosines=(vectors @ moved).astype(np.float64)))
    return trial.measure(again)


def _rm3(trial: Trial, weight: float) -> float:
    """Search again with words of the first results (Abdul-Jaleel and others 2004)."""
    corpus = trial.corpus
    again = []
    for asked, found in zip(corpus.asked, trial.found, strict=True):
        size = sum(worth / corpus.rarity(stem) for stem, worth in asked.weights.items())
        more = corpus.scores({stem: size * part for stem, part in expansion(found).items()})
        again.append(candidates(trial.corpus, asked, bm25=asked.bm25 + weight * more))
    return trial.measure(again)


def _left_out(trials: Sequence[Trial], names: Sequence[str]) -> dict[str, float]:
    """Return the quality of a linear model on each corpus, trained on the others."""
    found = {}
    for trial in trials:
        weights = _fitted([other for other in trials if other is not trial], names)
        found[trial.name] = trial.ranked_by([matrix @ weights for matrix in trial.matrices(names)])
    return found


def chosen_without(
    left_out: str, shipped: Mapping[str, float], rows: Mapping[str, Mapping[str, float]], questions: Mapping[str, int]
) -> dict[str, Any]:
    """Return the setting that all collections but one would choose, and what it changes on that one.

    Args:
        left_out: name of the collection.
        shipped: collection -> quality of the search.
        rows: setting -> collection -> its quality.
        questions: collection -> number of its questions, by which its changes count.

    Returns:
        `setting`, None if none helps without that a collection loses more than `MOST_LOST`; and `change`.
    """
    others = [name for name in shipped if name != left_out]
    best, most = None, 0.0
    for setting, found in rows.items():
        changes = [found[name] - shipped[name] for name in others]
        gain = float(np.average(changes, weights=[questions[name] for name in others]))
        if gain > most and min(changes) >= -MOST_LOST:
            best, most = setting, gain
    change = 0.0 if best is None else round(rows[best][left_out] - shipped[left_out], 4)
    return {"setting": best, "change": change}


def _weights(trials: Sequence[Trial], names: Sequence[str]) -> dict[str, float]:
    return dict(zip(names, np.round(_fitted(trials, names), 3).tolist(), strict=True))


def _fitted(trials: Sequence[Trial], names: Sequence[str]) -> Floats:
    """Return the weight of each feature, none negative: pairs of a right and a wrong candidate, all corpora alike."""
    parts = [trial.pairs(names) for trial in trials]
    differences = np.concatenate([apart for apart, _ in parts])
    weights = np.concatenate([weight for _, weight in parts])
    answers = np.repeat([1.0, 0.0], len(differences))
    # Each pair both ways round, so that there is no constant.
    _, found = fit_logistic(np.concatenate([differences, -differences]), answers, np.tile(weights, 2))
    return found


# --- corpora


def _corpora(options: argparse.Namespace, scratch: Path) -> Iterator[Corpus]:
    for folder in options.datasets:
        dataset = read_dataset(folder)
        place = scratch / dataset.name
        place.mkdir()
        indexed = index_dataset(dataset, parse_settings({}, "rerank trial"), place, Observer())
        with closing(Reader(indexed.settings)) as reader:
            yield Corpus(dataset.name, reader, _judged_by_documents(dataset))
    reports = scratch / "reports"
    reports.mkdir()
    yield _filings("made reports", reports, write_reports(reports), scratch / "made")
    if options.filings:
        lines = (options.filings / "questions.jsonl").read_text("utf-8").splitlines()
        questions = [
            Question(
                each["question"],
                f"{each['doc_name']}.pdf",
                tuple(evidence["evidence_page_num"] + 1 for evidence in each["evidence"]),
            )
            for each in map(json.loads, lines)
        ]
        yield _filings("FinanceBench", options.filings, questions, scratch / "filings")


def _judged_by_documents(dataset: Dataset) -> list[Judged]:
    names = {document.id: f"{number}.md" for number, document in enumerate(dataset.documents)}

    def judged(query: str, text: str) -> Judged:
        grades = {names.get(id_, id_): score for id_, score in dataset.judgements[query].items()}
        return Judged(
            text,
            lambda chunks: ndcg(list(dict.fromkeys(chunk["filename"] for chunk in chunks)), grades),
            lambda chunk: grades.get(chunk["filename"], 0),
        )

    return [judged(query, text) for query, text in dataset.queries.items()]


def _filings(name: str, source: Path, questions: Sequence[Question], corpus: Path) -> Corpus:
    values = {
        "corpus": {"root": str(corpus)},
        "source": [{"name": "filings", "uri": str(source), "include": ["*.pdf", "*.md"]}],
    }
    settings = parse_settings(values, "rerank trial")
    run_refresh(Request(settings), DirectEngine(), Observer())
    with closing(Reader(settings)) as reader:
        return Corpus(name, reader, [_judged_by_answer(question) for question in questions])


def _judged_by_answer(question: Question) -> Judged:
    def answers(chunk: Mapping[str, Any]) -> bool:
        held = chunk["page"] in question.pages if question.pages else question.words in chunk["text"]
        return bool(chunk["filename"] == question.filename and held)

    def reciprocal(chunks: Sequence[Mapping[str, Any]]) -> float:
        return next((1 / rank for rank, chunk in enumerate(chunks[:DEPTH], 1) if answers(chunk)), 0.0)

    return Judged(question.text, reciprocal, answers)


def _print(shipped: Mapping[str, float], rows: Mapping[str, Mapping[str, float]]) -> None:
    print(f"{'':<40}" + "".join(f"{name[:15]:>16}" for name in shipped))
    print(f"{'as shipped':<40}" + "".join(f"{value:16.4f}" for value in shipped.values()))
    for setting, found in rows.items():
        print(f"{setting:<40}" + "".join(f"{found[name] - value:+16.4f}" for name, value in shipped.items()))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rerank_trial")
    parser.add_argument("datasets", type=Path, nargs="*", help="folders in the form of BEIR")
    parser.add_argument("--filings", type=Path, help="folder of filings as PDF with questions.jsonl")
    parser.add_argument("--name", default="rerank-trial", help="of the file of results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
