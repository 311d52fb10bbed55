"""`parquetry analyze`: what it finds, once and again."""

import json

import pytest

from tests.serving.program import settle

pytestmark = pytest.mark.slow


def test_analysis_is_told_and_not_made_again_for_the_same_version(desk):
    for name in ("one.txt", "two.txt"):
        (desk.folder / "docs" / name).write_text("The same words in both files.")
    settle(desk)
    lines = desk("analyze").stdout.splitlines()
    assert "analyzed before" not in lines[0]
    assert "2 duplicates, 0 near-duplicates" in lines[1]
    told = json.loads(desk("analyze", "--json").stdout)
    assert (told["duplicates"], told["is_new"], told["notes"]) == (2, False, [])
    assert told["documents"] == told["placed"] >= 2
    assert json.loads(desk("analyze", "--again", "--json").stdout)["is_new"]


def test_corpus_that_does_not_exist_is_told(desk):
    refused = desk("analyze", "--corpus", desk.folder / "none")
    assert (refused.code, refused.stdout) == (2, "")
    assert "no corpus" in refused.stderr
