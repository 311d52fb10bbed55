"""Measures are checked against values worked out by hand; errors in datasets are reported."""

import json
import math

import pytest

from parquetry.errors import SettingsError
from parquetry.ranking.evaluation import Measures, measure, ndcg, read_dataset, recall, reciprocal_rank

GRADED = {"a": 3, "b": 2, "c": 0, "d": 1}


def test_gain_is_the_judgement_itself_and_the_ideal_is_of_everything_judged():
    """DCG of b, x, a is 2/1 + 0/1.585 + 3/2 = 3.5; of the ideal a, b, d it is 3/1 + 2/1.585 + 1/2 = 4.7619."""
    assert ndcg(["b", "x", "a"], GRADED) == pytest.approx(3.5 / 4.76186, abs=1e-5)
    assert ndcg(["a", "b", "d", "c"], GRADED) == 1.0


def test_a_document_below_the_depth_gains_nothing():
    ranking = [f"x{number}" for number in range(9)]
    assert ndcg([*ranking, "a"], {"a": 1}) == pytest.approx(1 / math.log2(11))
    assert ndcg([*ranking, "x9", "a"], {"a": 1}) == 0.0


def test_the_ideal_holds_no_more_documents_than_the_depth():
    judged = {f"r{number}": 1 for number in range(30)}
    assert ndcg([f"r{number}" for number in range(10)], judged) == 1.0


def test_a_judgement_below_zero_neither_gains_nor_costs():
    assert ndcg(["spam", "a"], {"spam": -2, "a": 1}) == pytest.approx(1 / math.log2(3))


def test_recall_counts_the_relevant_among_the_first_hundred():
    filler = [f"x{number}" for number in range(98)]
    assert recall(["a", *filler, "b", "d"], GRADED) == pytest.approx(2 / 3)


def test_the_rank_that_counts_is_that_of_the_first_relevant_document():
    assert reciprocal_rank(["c", "x", "d", "a"], GRADED) == pytest.approx(1 / 3)
    assert reciprocal_rank([f"x{number}" for number in range(10)] + ["a"], GRADED) == 0.0


def test_a_query_without_a_ranking_counts_as_zero():
    judgements = {"found": {"a": 1}, "silent": {"b": 1}}
    assert measure({"found": ["a"]}, judgements) == Measures(ndcg=0.5, recall=0.5, mrr=0.5)


# --- reading


@pytest.fixture
def dataset(tmp_path):
    """Write a collection of three documents as files that tests can damage."""
    folder = tmp_path / "crates"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        '{"_id": "one", "title": "Oak", "text": "A crate of oak."}\n'
        '{"_id": "two", "text": "A crate of pine."}\n\n'
        '{"_id": 3, "title": null, "text": ""}\n',
        "utf-8-sig",
    )
    (folder / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "oak"}\n{"_id": "q2", "text": "unjudged"}\n{"_id": "q3", "text": "nothing fits"}\n'
    )
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\r\nq1\tone\t2\nq1\tgone\t1\nq3\ttwo\t0\n")
    return folder


def test_a_dataset_is_read_with_its_judgements(dataset):
    read = read_dataset(dataset)
    assert read.name == "crates"
    assert [(each.id, each.title, each.text) for each in read.documents] == [
        ("one", "Oak", "A crate of oak."),
        ("two", "", "A crate of pine."),
        ("3", "", ""),
    ]
    assert read.judgements == {"q1": {"one": 2, "gone": 1}}


def test_queries_that_nothing_answers_are_not_asked(dataset):
    """An unjudged query is no evidence about a ranking, nor is one whose judged documents are all irrelevant."""
    assert read_dataset(dataset).queries == {"q1": "oak"}


def test_relevant_documents_that_are_not_there_are_counted(dataset):
    assert read_dataset(dataset).unknown == 1


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("corpus.jsonl", '{"_id": "a", "text": "x"}\n{"_id": "b"', "corpus.jsonl, line 2: is not JSON"),
        ("corpus.jsonl", '["a", "b"]\n', "corpus.jsonl, line 1: must be a JSON object"),
        ("corpus.jsonl", '{"id": "a", "text": "x"}\n', "corpus.jsonl, line 1: needs a string _id"),
        ("corpus.jsonl", '{"_id": "a", "title": "x"}\n', "corpus.jsonl, line 1: needs a string text"),
        ("corpus.jsonl", '{"_id": "a", "title": 1, "text": "x"}\n', "corpus.jsonl, line 1: title must be a string"),
        ("corpus.jsonl", '{"_id": "a", "text": ""}\n' * 2, "corpus.jsonl, line 2: _id 'a' stands in an earlier line"),
        ("corpus.jsonl", '{"_id": "a", "text": "\\ud83d"}\n', "line 1: text holds half of a surrogate pair"),
        ("corpus.jsonl", "\n", "corpus.jsonl holds no documents"),
        ("queries.jsonl", "", "queries.jsonl holds no queries"),
        ("queries.jsonl", '{"_id": "q1"}\n', "queries.jsonl, line 1: needs a string text"),
        ("queries.jsonl", '{"_id": "q1", "text": ""}\n' * 2, "queries.jsonl, line 2: _id 'q1' stands in an earlier"),
        ("qrels/test.tsv", "", "test.tsv: the first line must be the header query-id TAB corpus-id TAB score"),
        ("qrels/test.tsv", "q1\tone\t1\n", "test.tsv, line 1: the first line must be the header"),
        ("qrels/test.tsv", "HEAD" + "q1 0 one 1\n", "test.tsv, line 2: has 1 columns between tabs"),
        ("qrels/test.tsv", "HEAD" + "q1\tone\thigh\n", "test.tsv, line 2: score must be a whole number, not 'high'"),
        ("qrels/test.tsv", "HEAD" + "q9\tone\t1\n", "test.tsv, line 2: query-id 'q9' is not in queries.jsonl"),
        ("qrels/test.tsv", "HEAD" + "q1\tone\t1\nq1\tone\t2\n", "line 3: an earlier line judges 'one' for query 'q1'"),
        ("qrels/test.tsv", "HEAD" + "q1\tone\t0\n", "test.tsv: no query has a relevant document"),
    ],
)
def test_a_malformed_line_is_named_with_its_file(dataset, file, text, complaint):
    (dataset / file).write_text(text.replace("HEAD", "query-id\tcorpus-id\tscore\n"))
    with pytest.raises(SettingsError) as raised:
        read_dataset(dataset)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named(dataset, file):
    (dataset / file).unlink()
    with pytest.raises(SettingsError, match=rf"{file.replace('.', '[.]')} is missing; a dataset has corpus[.]jsonl"):
        read_dataset(dataset)


def test_a_file_that_is_no_utf8_is_named(dataset):
    (dataset / "corpus.jsonl").write_bytes(json.dumps({"_id": "a", "text": "Gr"}).encode() + b"\xff")
    with pytest.raises(SettingsError, match=r"corpus[.]jsonl cannot be read: .*utf-8"):
        read_dataset(dataset)


def test_a_folder_that_is_not_there_is_told_what_a_dataset_is(tmp_path):
    with pytest.raises(SettingsError, match=r"crates is not a folder; a dataset is one with corpus[.]jsonl"):
        read_dataset(tmp_path / "crates")
