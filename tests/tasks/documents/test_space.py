"""A run estimates its disk usage before it starts, and stops only if the shortage is certain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parquetry.errors import RefusedError
from parquetry.flows.pipelines.documents import Request, plan_with_space
from parquetry.tasks.documents.space import LEAST_FILES, DiskSpace, check_space
from tests.documentation import ROOT


def space(free, files=None):
    return DiskSpace("/srv/corpus", likely=20_000_000, at_least=5_000_000, free=free, files_free=files)


def test_run_that_may_fit_begins_though_less_is_free_than_is_likely():
    check_space([space(5_000_000), space(10**12, LEAST_FILES)])


@pytest.mark.parametrize(("tight", "told"), [(space(4_999_999), "5.0 MB free"), (space(10**12, 7), "7 more files")])
def test_run_that_cannot_fit_is_refused_in_one_line(tight, told):
    with pytest.raises(RefusedError, match=re.escape(told)) as refused:
        check_space([space(10**12), tight])
    assert "/srv/corpus" in str(refused.value)
    assert "nothing was done" in str(refused.value)


def taken(workshop):
    return sum(path.stat().st_size for path in (workshop.root / "corpus").rglob("*") if path.is_file())


@pytest.mark.slow
def test_what_is_told_is_near_to_what_is_taken_and_the_certain_part_below(workshop):
    workshop.sections["chunking"] = {"size": 20, "overlap": 0}
    for number in range(40):
        text = "\n\n".join(
            f"Rule {number}.{rule}: count the boards of row {rule * 7} twice a day." for rule in range(60)
        )
        workshop.write(f"{number}.md", text)
    for published in range(3):
        before = taken(workshop) if published else 0
        _, (planned,) = plan_with_space(Request(workshop.settings))
        workshop.refresh()
        assert planned.at_least <= taken(workshop) - before < planned.likely * 1.5
        assert planned.likely < 3 * (taken(workshop) - before) + 2_000_000
        workshop.write("1.md", f"Rule {published}: look twice.")


def test_nothing_to_do_takes_nothing(workshop):
    """A run over a full disk can still report that the corpus is up to date."""
    workshop.write("a.md", "The oak is dried.")
    workshop.refresh()
    assert plan_with_space(Request(workshop.settings))[1] == ()


def test_index_on_another_disk_is_told_by_itself(workshop):
    # The tests themselves may run in memory.
    places = [place for place in (Path("/dev/shm"), Path("/tmp"), ROOT) if place.is_dir()]
    others = [place for place in places if place.stat().st_dev != workshop.root.stat().st_dev]
    if not others:
        pytest.skip("there is no second disk to write to")
    workshop.sections["search"] = {"index_folder": str(others[0] / "parquetry-index")}
    workshop.write("a.md", "The oak is dried.")
    _, spaces = plan_with_space(Request(workshop.settings))
    corpus, index = spaces
    assert corpus.place == str(workshop.root / "corpus")
    assert index.place.startswith(str(others[0]))
    assert corpus.likely < index.likely
    assert not (others[0] / "parquetry-index").exists()
