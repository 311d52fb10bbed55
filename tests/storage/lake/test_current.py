"""Current rows are read as requested: all of them, those of some documents, or those with some contents."""

from dataclasses import replace
from pathlib import PurePosixPath
from random import Random

import pytest

from parquetry.planning.estimate import extension_of
from parquetry.planning.outline import DocumentOutline
from parquetry.storage.database import open_duckdb
from parquetry.storage.lake import current
from parquetry.storage.lake.current import CurrentRows, current_rows
from parquetry.storage.lake.lake import Lake
from tests.records import content_hash, failed, row


@pytest.fixture
def lake(tmp_path):
    """Create a corpus in which one document changed, one was removed and one is in another namespace."""
    lake = Lake(str(tmp_path / "corpus"), create=True)
    before = [row("a.md", "old"), row("b.md", "one"), row("c.md", "gone"), failed("d.md", "one")]
    lake.publish(lake.snapshot(), before, "run-1")
    lake.publish(lake.snapshot(), [row("a.md", "two"), replace(before[2], removed=True)], "run-2")
    lake.publish(lake.snapshot(), [row("a.md", "one", namespace="hr")], "run-3")
    return lake


def places(rows):
    return [(each.namespace, each.path, each.sequence) for each in rows]


def test_each_row_is_there_once_as_it_is_now(lake):
    rows = CurrentRows(lake.snapshot())
    expected = [("default", "a.md", 2), ("default", "b.md", 1), ("default", "d.md", 1), ("hr", "a.md", 1)]
    assert sorted(places(rows.each())) == places(rows.all()) == places(current_rows(lake.snapshot())) == expected


def test_rows_of_named_documents_are_their_current_ones(lake):
    ids = {(each.namespace, each.path): each.document_id for each in CurrentRows(lake.snapshot(version=1)).all()}
    rows = CurrentRows(lake.snapshot(), ["default"])
    assert places(rows.named(ids.values())) == [("default", "a.md", 2), ("default", "b.md", 1), ("default", "d.md", 1)]
    assert places(rows.named([ids["default", "c.md"], "unknown"])) == []
    assert rows.named([]) == []
    for other in (CurrentRows(lake.snapshot(), ["default"]), rows):
        # Once before it is known which documents have several rows, and once after.
        for _ in range(2):
            assert places(sorted(other.each_named(ids.values()), key=lambda each: each.path)) == places(
                rows.named(ids.values())
            )
            assert list(other.each_named([ids["default", "c.md"], "unknown"])) == list(other.each_named([])) == []
            assert len(list(other.outlines())) == 3


def test_rows_are_found_by_the_content_that_they_have_now(lake):
    rows = CurrentRows(lake.snapshot(), ["default"])
    assert places(rows.holding([content_hash("one")])) == [("default", "b.md", 1), ("default", "d.md", 1)]
    assert places(rows.holding([content_hash("two"), content_hash("gone")])) == [("default", "a.md", 2)]
    assert rows.holding([content_hash("old")]) == []


def test_only_rows_of_the_namespaces_that_were_asked_for(lake):
    assert places(CurrentRows(lake.snapshot(), ["hr"]).holding([content_hash("one")])) == [("hr", "a.md", 1)]
    assert CurrentRows(lake.snapshot(), []).all() == []


def test_corpus_that_does_not_exist_yet_has_no_rows():
    rows = CurrentRows(None)
    assert (rows.all(), rows.named(["x"]), rows.holding(["x"])) == ([], [], [])
    assert list(rows.each_named(["x"])) == []


def test_outlines_are_parts_of_the_current_rows(lake):
    rows = CurrentRows(lake.snapshot())
    expected = [DocumentOutline(*(getattr(each, name) for name in DocumentOutline._fields)) for each in rows.all()]
    assert sorted(rows.outlines()) == sorted(expected)
    assert len(expected) == 4


def test_outlines_of_paths_are_those_of_their_current_rows(lake):
    rows = CurrentRows(lake.snapshot(), ["default"])
    found = [(each.path, each.etag) for each in rows.outlines(["a.md", "c.md", "unknown"])]
    assert found == [("a.md", "etag-two")]
    assert list(rows.outlines([])) == []


@pytest.mark.parametrize("seed", range(5))
def test_current_rows_are_the_last_ones_whatever_was_published_before(tmp_path, seed):
    """Documents with one row are read apart from those with several."""
    random = Random(seed)
    lake = Lake(str(tmp_path / "corpus"), create=True)
    expected: dict[tuple[str, str], tuple[str, str, int] | None] = {}
    for number in range(6):
        published = [
            row(path, str(number), namespace=space, removed=random.random() < 0.3)
            for space in ("default", "hr")
            for path in random.sample([f"{each}.md" for each in range(12)], 4)
        ]
        lake.publish(lake.snapshot(), published, f"run-{number}")
        for each in published:
            place = (each.namespace, each.path)
            expected[place] = None if each.removed else (*place, number + 1)
    there = sorted(each for each in expected.values() if each)
    rows = CurrentRows(lake.snapshot())
    assert sorted(places(rows.each())) == there
    assert sorted((each.namespace, each.path) for each in rows.outlines()) == [each[:2] for each in there]
    assert sorted(places(CurrentRows(lake.snapshot(), ["hr"]).each())) == [each for each in there if each[0] == "hr"]
    assert rows.sources() == [("default", "docs", False), ("hr", "docs", False)]


def test_amounts_are_summed_by_the_extension_that_a_plan_tells_from_a_path(tmp_path):
    names = ["a.md", "b.MD", "sub.d/c", "sub/.md", "..md", "d.tar.gz", "e.", "f.ä", ".x.md", "no\nline.md", "g..md"]
    lake = Lake(str(tmp_path / "corpus"), create=True)
    rows = [row(name, name, size=1 << place, characters=3, tokens=2) for place, name in enumerate(names)]
    lake.publish(lake.snapshot(), [*rows, failed("z.md", size=1 << 20), row("y.md", namespace="hr")], "run-1")
    sums: dict[str, list[int]] = {}
    for each in rows:
        sums.setdefault(extension_of(each.path), []).append(each.size)
    assert {extension_of(name) for name in names} == {PurePosixPath(name).suffix.lower() for name in names}
    found = CurrentRows(lake.snapshot(), ["default"]).amounts([*sums, ".pdf"], ["default", "hr"])
    expected = {extension: (sum(sizes), 3 * len(sizes), 2 * len(sizes)) for extension, sizes in sums.items()}
    assert found.by_extension == expected
    assert dict(found.sizes) == {"default": {each.size for each in rows}}


@pytest.mark.slow
def test_rows_of_all_documents_are_read_in_less_memory_than_they_take(tmp_path, monkeypatch):
    lake, random = Lake(str(tmp_path / "corpus"), create=True), Random(1)
    wide = [row(f"{number}.md", str(number), title=random.randbytes(2500).hex()) for number in range(20_000)]
    lake.publish(lake.snapshot(), wide, "run-1")

    def limited():
        connection = open_duckdb()
        connection.execute("SET memory_limit = '80MB'")
        connection.execute("SET max_temp_directory_size = '0B'")
        return connection

    monkeypatch.setattr(current, "open_duckdb", limited)
    rows = CurrentRows(lake.snapshot(), ["default"])
    read = rows.each_named(each.document_id for each in rows.outlines())
    assert sum(len(each.title) for each in read) == 5000 * 20_000
