"""The made annual reports hold the answers to their questions, each in its own document alone."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks import filings
from benchmarks.filings_made import COMPANIES, YEARS, write_reports


@pytest.mark.parametrize("long_tables", [False, True])
def test_each_question_has_its_answer_in_the_document_that_it_names_and_nowhere_else(
    tmp_path: Path, *, long_tables: bool
) -> None:
    questions = write_reports(tmp_path, long_tables=long_tables)
    texts = {file.name: file.read_text("utf-8") for file in tmp_path.iterdir()}
    assert len(questions) == len(texts) == len(COMPANIES) * len(YEARS)
    for question in questions:
        assert [name for name, text in texts.items() if question.words in text] == [question.filename]
        assert any(company in question.text for company in COMPANIES)


def test_reports_are_the_same_each_time_and_half_of_the_names_say_nothing(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert write_reports(tmp_path / "one") == write_reports(tmp_path / "two")
    numbered = Counter(file.name[0].isdigit() for file in (tmp_path / "one").iterdir())
    assert numbered == {True: 30, False: 30}


def test_half_of_the_long_tables_are_plain_lines_whatever_the_names_say(tmp_path: Path) -> None:
    write_reports(tmp_path, long_tables=True)
    found = Counter((file.suffix, file.name[0].isdigit()) for file in tmp_path.iterdir())
    assert found == {(".md", True): 15, (".md", False): 15, (".txt", True): 15, (".txt", False): 15}
    assert not any("|" in file.read_text("utf-8") for file in tmp_path.glob("*.txt"))


@pytest.mark.slow
def test_weights_of_the_vectors_are_measured_over_all_questions(tmp_path: Path) -> None:
    result = filings.main(["--weight", "0", "--weight", "1", "--results", str(tmp_path)])
    halves = result["measured"].values()
    for weight, mode in (("0", "text"), ("1", "vector")):
        whole = sum(half[mode]["answer found"] for half in halves) / 2
        assert result["by weight"][weight]["answer found"] == pytest.approx(whole, abs=1e-4)
