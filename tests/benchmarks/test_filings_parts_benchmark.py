"""The benchmark of the parts of the ranking: each is switched off by constants that exist, and switched on again."""

from __future__ import annotations

import json

import pytest

from benchmarks import filings_parts
from benchmarks.filings_made import write_reports
from benchmarks.filings_parts import PARTS, replaced


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_switched_off_by_other_values_and_back_on(part: str):
    constants = PARTS[part]
    before = [getattr(module, name) for module, name, _ in constants]
    assert all(value != now for (*_, value), now in zip(constants, before, strict=True))
    during = []
    with replaced(constants):
        during = [getattr(module, name) for module, name, _ in constants]
    assert during == [value for *_, value in constants]
    assert [getattr(module, name) for module, name, _ in constants] == before


def test_a_constant_that_is_gone_is_an_error():
    with pytest.raises(AttributeError), replaced([(filings_parts, "NO_SUCH_CONSTANT", 1)]):
        pass


@pytest.mark.slow
def test_reports_without_identities_are_found_less_often(tmp_path):
    questions = write_reports(tmp_path)[30:36]
    found = [
        filings_parts.measured(tmp_path, questions, PARTS[part])["text"]["answer found"]
        for part in ("as shipped", "no identities of documents")
    ]
    assert found[0] > found[1]


@pytest.mark.slow
def test_a_collection_without_divided_words_does_not_find_the_year_within_one(tmp_path):
    (tmp_path / "qrels").mkdir()
    corpus = [{"_id": "year", "title": "", "text": "Sales of FY2017."}, {"_id": "other", "title": "", "text": "Oaks."}]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(each) + "\n" for each in corpus), "utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "2017"}\n', "utf-8")
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tyear\t1\n", "utf-8")
    parts = filings_parts.of_collection(tmp_path)
    assert {part for part, modes in parts.items() if modes["text"] == 0} == {"letters and digits not divided"}
    assert parts["as shipped"]["text"] == 1
