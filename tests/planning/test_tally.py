"""Counts that are made while changes are planned are those of the changes."""

from collections.abc import Sequence
from dataclasses import replace

from parquetry.planning.diff import SourcePlan
from parquetry.planning.report import DocumentCounts, count_documents
from parquetry.planning.tally import TalliedChanges, Tally, tally_of
from tests.planning.test_report import EVERYTHING, change


class Unread(Sequence):
    """Changes in a file that nothing may read again."""

    def __init__(self, count):
        self._count = count

    def __len__(self):
        return self._count

    def __getitem__(self, place):
        raise AssertionError("read again")


def tallied(changes):
    tally = Tally()
    assert tuple(tally.counted(changes)) == tuple(changes)
    return TalliedChanges(Unread(len(changes)), tally)


def test_changes_are_counted_by_the_work_they_need():
    tally = tally_of(EVERYTHING)
    assert tally.to_do == sum(each.effort != "nothing" for each in EVERYTHING) == 9
    assert tally.rows == sum(each.effort == "row" for each in EVERYTHING) == 4
    assert tally.not_indexed == 3


def test_bytes_are_those_of_new_documents_that_are_plain_text():
    plain, packed = change("a.md"), change("b.pdf")
    edited = change("c.md", "changed", known=EVERYTHING[1].known)
    assert tally_of([plain, packed, edited]).plain_bytes == plain.item.size > 0


def test_a_plan_is_counted_without_reading_its_changes_again():
    counts = count_documents([SourcePlan("docs", "default", tallied(EVERYTHING), unchanged=3)])
    assert counts == count_documents([SourcePlan("docs", "default", EVERYTHING, unchanged=3)])
    assert counts.scanned == len(EVERYTHING) - 1 + 3
    assert (counts.added, counts.removed, counts.failed, counts.skipped) == (3, 1, 1, 1)


def test_removals_that_another_source_takes_over_count_as_removed():
    plan = SourcePlan("docs", "default", tallied(EVERYTHING), handed_over=(EVERYTHING[6],) * 2)
    assert count_documents([plan]) == replace(count_documents([replace(plan, handed_over=())]), removed=3)


def test_a_source_without_changes_counts_nothing():
    assert count_documents([SourcePlan("docs", "default", ())]) == DocumentCounts()
