"""An analysis of a whole corpus: what is alike or was read badly, under the permissions of the one who asks."""

import io
from contextlib import closing

import pytest
from reportlab.pdfgen.canvas import Canvas

from parquetry.model import Access
from parquetry.settings.sections import parse_settings
from parquetry.sources.uploads.store import UploadStore
from parquetry.storage.analysis.analyze import analyze
from parquetry.storage.analysis.folder import newest_analysis
from parquetry.storage.analysis.lists import alike, analyzed, faulty, in_cluster, names_of_clusters, placed, within
from parquetry.storage.search.filters import Caller, Filters
from tests.workshop import Workshop

POEM = " ".join(f"line{number} of the poem" for number in range(80))


def small_page():
    made = io.BytesIO()
    canvas = Canvas(made)
    canvas.drawString(72, 700, "Three words here.")
    canvas.save()
    return made.getvalue()


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    made = Workshop(tmp_path_factory.mktemp("analysis"))
    made.write("a/poem.txt", POEM)
    made.write("b/poem.txt", POEM)
    made.write("c/poem.txt", POEM.replace("line7 ", "verse7 "))
    made.write("other.txt", " ".join(f"word{number}" for number in range(200)))
    made.write("small.pdf", small_page())
    made.write("garbled.txt", "What is \ufffd\ufffd this? " + "It is long enough to be no short text. " * 10)
    UploadStore(made.settings).put(
        "default", "mine.txt", POEM.encode(), filename="mine.txt", access=Access("individual", user_id="ada")
    )
    made.refresh()
    made.refresh(targets=("uploads",))
    return made


@pytest.fixture(scope="module")
def done(workshop):
    return analyze(workshop.lake.snapshot(), workshop.settings.search)


@pytest.fixture
def asking(workshop, done):
    """Return a function that asks a list for a caller."""
    with workshop.reader() as reader, closing(reader.index.session()) as session:
        file = newest_analysis(reader.snapshot.layout, workshop.settings.search)

        def ask(what, *given, caller=None):
            return what(session, file, Filters(caller=caller), *given)

        yield ask


def test_outcome_is_counted_and_kept_until_the_corpus_changes(workshop, done):
    assert (done.documents, done.duplicates, done.near_duplicates, done.placed) == (7, 3, 4, 7)
    assert done.is_new
    assert done.notes == ()
    file = newest_analysis(workshop.lake.layout, workshop.settings.search)
    before = file.stamp
    again = analyze(workshop.lake.snapshot(), workshop.settings.search)
    assert not again.is_new
    assert (again.documents, again.version) == (7, done.version)
    assert file.stamp == before
    analyze(workshop.lake.snapshot(), workshop.settings.search, again=True)
    assert file.stamp != before


def test_duplicates_and_near_duplicates_stand_together(asking):
    same = asking(alike, "duplicates", 10, 0)
    assert {row["path"] for row in same} == {"a/poem.txt", "b/poem.txt", "~ada/mine.txt"}
    assert len({row["together"] for row in same}) == 1
    near = asking(alike, "near-duplicates", 10, 0)
    assert {row["path"] for row in near} == {"a/poem.txt", "b/poem.txt", "c/poem.txt", "~ada/mine.txt"}
    assert all(0.7 <= row["near_share"] <= 1 for row in near)
    assert len(asking(alike, "near-duplicates", 2, 3)) == 1


def test_faults_are_listed_with_their_facts(asking):
    (little,) = asking(faulty, "little-text", 10, 0)
    assert (little["path"], little["pages"]) == ("small.pdf", 1)
    (garbled,) = asking(faulty, "garbled", 10, 0)
    assert (garbled["path"], garbled["unmapped"]) == ("garbled.txt", 2)
    assert asking(faulty, "scanned", 10, 0) == []
    counts = asking(analyzed)
    faults = {"incomplete": 0, "little-text": 1, "garbled": 1, "scanned": 0}
    assert counts == {**faults, "duplicates": 3, "near-duplicates": 4, "analyzed": 7}


def test_another_persons_document_is_in_no_list_and_in_no_count(asking):
    for caller, number in ((Caller("eve", None), 2), (Caller("ada", None), 3)):
        assert asking(analyzed, caller=caller)["duplicates"] == number
        found = asking(alike, "duplicates", 10, 0, caller=caller)
        assert len(found) == found[0]["members"] == number
        assert len(asking(placed, caller=caller).x) == 4 + number
        assert asking(within, (0, 0, 1, 1), 10, caller=caller)[1] == 4 + number
        assert sum(size for _, size, _ in asking(names_of_clusters, caller=caller)) == 4 + number


def test_map_is_asked_by_area_and_cluster(asking):
    everywhere, number = asking(within, (0.0, 0.0, 1.0, 1.0), 3)
    assert (len(everywhere), number) == (3, 7)
    assert asking(within, (0.0, 0.0, 0.0, 0.0), 3)[1] <= 1
    clusters = asking(names_of_clusters)
    assert [asking(in_cluster, cluster, 10)[1] for cluster, _, _ in clusters] == [size for _, size, _ in clusters]


def test_document_that_changed_since_is_in_no_list(tmp_path):
    workshop = Workshop(tmp_path)
    workshop.write("a.txt", "The same words.")
    workshop.write("b.txt", "The same words.")
    workshop.refresh()
    first = analyze(workshop.lake.snapshot(), workshop.settings.search)
    workshop.write("b.txt", "Now other words.")
    workshop.refresh()
    with workshop.reader() as reader, closing(reader.index.session()) as session:
        file = newest_analysis(reader.snapshot.layout, workshop.settings.search)
        assert file.version == first.version
        counts = analyzed(session, file, Filters())
    assert (counts["analyzed"], counts["duplicates"]) == (1, 0)
    second = analyze(workshop.lake.snapshot(), workshop.settings.search)
    assert (second.duplicates, second.is_new) == (0, True)
    kept = sorted(path.name for path in file.path.parent.glob("analysis-*"))
    assert kept == [f"analysis-{first.version}.parquet", f"analysis-{second.version}.parquet"]


def test_corpus_without_documents_has_an_empty_analysis(tmp_path):
    workshop = Workshop(tmp_path)
    workshop.write("a.txt", "Words.")
    workshop.refresh()
    (tmp_path / "docs" / "a.txt").unlink()
    workshop.write("empty.txt", "")
    workshop.refresh(allow_removals=True)
    done = analyze(workshop.lake.snapshot(), parse_settings({}, "test").search)
    assert (done.documents, done.placed) == (0, 0)


def test_points_of_the_map_are_columns_in_one_order(workshop, asking):
    found = asking(placed)
    assert sorted(found.media_type.values) == ["application/pdf", "text/plain"]
    with workshop.reader() as reader:
        known = {row["document_id"].replace("-", ""): row for row in reader.documents()}
    assert {each.tobytes().hex() for each in found.ids} == set(known)
    for place, each in enumerate(found.ids):
        row = known[each.tobytes().hex()]
        assert found.source.values[found.source.numbers[place]] == row["source"]
        assert found.media_type.values[found.media_type.numbers[place]] == row["media_type"]
    x, y = float(found.x[0]), float(found.y[0])
    listed = {row["document_id"].replace("-", "") for row in asking(within, (x, y, x, y), 10)[0]}
    assert found.ids[0].tobytes().hex() in listed
    assert len(listed) < 7
