"""An analysis after a small change keeps what holds, and finds the same as one of everything."""

import pyarrow.parquet as pq
import pytest

from parquetry.storage.analysis import alike as comparing
from parquetry.storage.analysis import analyze as analyzing
from parquetry.storage.analysis import earlier
from parquetry.storage.analysis.analyze import analyze
from parquetry.storage.analysis.folder import newest_analysis
from tests.workshop import Workshop

POEM = " ".join(f"line{number} of the poem" for number in range(80))
SONG = " ".join(f"tone{number} of a song" for number in range(80))


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A corpus of 36 documents that was analyzed, and of which three changed since."""
    workshop = Workshop(tmp_path_factory.mktemp("repeated"))
    for number in range(30):
        workshop.write(f"other{number}.txt", " ".join(f"word{number}x{place}" for place in range(60)))
    workshop.write("a/poem.txt", POEM)
    workshop.write("b/poem.txt", POEM)
    workshop.write("c/poem.txt", POEM.replace("line7 ", "verse7 "))
    workshop.write("a/song.txt", SONG)
    workshop.write("b/song.txt", SONG.replace("tone9 ", "note9 "))
    workshop.write("gone.txt", SONG.replace("tone3 ", "note3 "))
    workshop.refresh()
    workshop.analyzed = analyze(workshop.lake.snapshot(), workshop.settings.search)
    workshop.first = rows_of(workshop)
    (workshop.root / "docs" / "gone.txt").unlink()
    # The one that stood for the content that both had.
    workshop.write("a/poem.txt", POEM.replace("line2 ", "verse2 "))
    workshop.write("d/song.txt", SONG.replace("tone5 ", "note5 "))
    workshop.refresh(allow_removals=True)
    return workshop


def rows_of(workshop):
    """Rows of the newest analysis, by document."""
    file = newest_analysis(workshop.lake.layout, workshop.settings.search)
    return {row["document_id"]: row for row in pq.read_table(file.path).to_pylist()}


def families(rows):
    """Groups of near-duplicates, whatever their numbers are."""
    groups = {}
    for row in rows.values():
        if row["near"] is not None:
            groups.setdefault(row["near"], set()).add((row["document_id"], round(row["near_share"], 4)))
    return sorted(map(sorted, groups.values()))


def test_it_finds_what_an_analysis_of_everything_finds(desk, monkeypatch):
    compared = []

    def noted(vectors, changed, check):
        compared.append(changed if changed is None else changed.tolist())
        return similar_pairs(vectors, changed, check)

    similar_pairs = comparing.similar_pairs
    monkeypatch.setattr(comparing, "similar_pairs", noted)
    monkeypatch.setattr(analyzing, "project", None)
    assert desk.analyzed.near_duplicates == 6
    again = analyze(desk.lake.snapshot(), desk.settings.search)
    assert (again.documents, again.near_duplicates, again.placed) == (36, 6, 36)
    kept = rows_of(desk)
    # Two that changed, and the copy that now stands for its content alone.
    assert len(compared.pop()) == 3
    monkeypatch.undo()
    analyze(desk.lake.snapshot(), desk.settings.search, again=True)
    everything = rows_of(desk)
    assert len(families(kept)) == 2
    assert families(kept) == families(everything)
    unchanged = [each for each, row in kept.items() if desk.first.get(each, {}).get("revision") == row["revision"]]
    assert len(unchanged) == 34
    for each in unchanged:
        assert [kept[each][name] for name in ("x", "y", "cluster")] == [
            desk.first[each][name] for name in ("x", "y", "cluster")
        ]
    assert all(row["x"] is not None and row["cluster"] is not None for row in kept.values())


@pytest.mark.slow
def test_changes_add_up_until_everything_is_placed_again(desk, monkeypatch):
    placed = []

    def noted(*given):
        placed.append(len(given[0]))
        return project(*given)

    project = analyzing.project
    monkeypatch.setattr(analyzing, "project", noted)
    analyze(desk.lake.snapshot(), desk.settings.search, again=True)
    for number in range(4):
        desk.write(f"other{number}.txt", f"Now it says something else {number}.")
        desk.refresh()
        analyze(desk.lake.snapshot(), desk.settings.search)
        assert len(placed) == (1 if number < 3 else 2), number


def test_file_of_an_earlier_program_is_not_built_upon(desk):
    analyze(desk.lake.snapshot(), desk.settings.search, again=True)
    file = newest_analysis(desk.lake.layout, desk.settings.search)
    table = pq.read_table(file.path)
    facts = analyzing.CorpusFacts(table, analyzing.np.arange(36), analyzing.np.zeros((36, 1), "float32"), 0)
    assert earlier.earlier(file, facts).changed == 0
    assert earlier.earlier(None, facts) is None
    pq.write_table(table.drop_columns(["like"]), file.path)
    assert earlier.earlier(file, facts) is None
    pq.write_table(table.replace_schema_metadata({}), file.path)
    assert earlier.earlier(file, facts) is None
