"""The benchmark of web pages: its pages are the same each time, and its figures tell what was kept."""

import json

import pytest

from benchmarks import pages
from benchmarks.pages_made import made_pages


def test_pages_are_the_same_for_a_seed_and_hold_the_words_that_are_wanted():
    one, again, other = (list(made_pages(2, seed)) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert len({page.kind for page in one}) == len(one) / 2 >= 9
    for page in one:
        assert [word for word in page.expected.split() if word not in page.html] == []


@pytest.mark.slow
def test_figures_tell_recall_precision_and_rows_of_both(tmp_path):
    result = pages.main(["--pages", "1", "--label", "few", "--results", str(tmp_path)])
    assert json.loads((tmp_path / "few.json").read_text())["figures"] == result["figures"]
    for readers in result["figures"].values():
        assert readers.keys() == {"parquetry", "trafilatura"}
        for row in readers.values():
            assert all(0 <= value <= 1 for value in row.values())
    # What is measured beside each other is not the same.
    assert result["figures"]["all"]["parquetry"] != result["figures"]["all"]["trafilatura"]
