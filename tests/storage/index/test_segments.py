"""An index whose rows are in several files: it answers as one file does, and costs what a publish changed."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings

from parquetry.settings.sections import SearchSettings
from parquetry.storage.index import wear
from parquetry.storage.index.check import disagreements
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.open_index import attached, build, in_memory, written
from parquetry.storage.index.segments import Division, segment_files, segments_of
from parquetry.storage.index.space import index_bytes
from parquetry.storage.index.vector_memory import VectorMemories
from tests.documentation import ROOT
from tests.storage.index.forward import STEPS, answers, bring_forward, folder, refresh, texts
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow
LIBRARY = {f"{number}.md": texts(number) for number in range(30)}


def divided(root, chunks):
    """A corpus whose index is divided into segments of so many chunks."""
    shelf = Shelf(root)
    shelf.settings = SearchSettings(language="none", segment_chunks=chunks)
    return shelf


@pytest.fixture
def library(tmp_path):
    """A corpus with an index in several segments."""
    shelf = divided(tmp_path / "corpus", 20)
    shelf.publish(LIBRARY)
    refresh(shelf)
    return shelf


def files_of(shelf):
    return {file.name: file.stat().st_ino for file in segment_files(folder(shelf).path)}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
@example([("write", 0, 3), ("write", 0, 4), ("remove", 0, 0), ("write", 1, 5), ("retitle", 1, 2), ("write", 1, 9)])
def test_segments_are_searched_as_one_file_whatever_is_published(tmp_path_factory, monkeypatch, steps):
    monkeypatch.setattr(wear, "WORN_ROWS", 1)
    bring_forward(divided(tmp_path_factory.mktemp("corpus"), 3), steps)


def test_index_in_memory_of_a_service_is_read_from_all_segments(library):
    library.publish({"3.md": ["oak anew"], "7.md": ["elm anew"]})
    opened = folder(library).open(library.lake.snapshot())
    anew = in_memory(library.lake.snapshot(), library.settings.language)
    with closing(opened), closing(anew):
        memory, other = VectorMemories().of(opened), VectorMemories().of(anew)
        assert len(segments_of(opened.connection)) >= 3
        found = answers(opened.session(), memory=memory)
        assert found == answers(anew.session(), memory=other)
        assert found
        (space,) = memory.spaces.values()
        # Vectors of replaced chunks, which segments still have, are not held.
        assert space.live == sum(len(chunks) for chunks in library.texts().values())


def test_segments_are_shared_by_all_versions_and_not_written_again(library):
    before = files_of(library)
    assert len(before) >= 3
    for turn in range(4):
        library.publish({"new.md": [f"oak {turn}"]})
        refresh(library)
        assert files_of(library) == before
    with closing(folder(library).open(library.lake.snapshot())) as opened:
        assert opened.connection.execute("SELECT count(*) <= 4 FROM segment.chunks").fetchall() == [(True,)]
    assert disagreements(library.lake.snapshot(), library.settings) == (5, [])


def test_space_of_rows_that_left_the_index_file_is_given_back(tmp_path):
    shelf = divided(tmp_path / "corpus", 400)
    shelf.publish({f"{number}.md": [f"oak {number}"] * 10 for number in range(60)}, embedder="wide@2048")
    newest = refresh(shelf)
    with attached(newest.path, read_only=True) as connection:
        ((free, held),) = connection.execute(
            "SELECT free_blocks, used_blocks FROM pragma_database_size() WHERE database_name = 'ix'"
        ).fetchall()
    assert len(newest.segments) == 1
    assert free <= 2 < held


def test_a_file_that_lacks_a_segment_is_not_the_next_one(library):
    """It has the rows of that segment, and would write them once more."""
    many = {f"more-{number}.md": ["one", "two"] for number in range(9)}
    library.publish(many)
    refresh(library)
    library.publish({"more-again.md": ["three", "four"]})
    made = refresh(library)
    closed = files_of(library)
    library.publish({"last.md": ["five"]})
    assert set(refresh(library).segments) == set(made.segments) == {name.removesuffix(".duckdb") for name in closed}
    assert files_of(library) == closed


def test_worn_segment_is_written_again_without_what_was_replaced_and_no_other_is(library, monkeypatch):
    monkeypatch.setattr(wear, "WORN_ROWS", 3)
    before = files_of(library)
    with closing(folder(library).open(library.lake.snapshot())) as opened:
        worn = segments_of(opened.connection)[0]
        inside = opened.connection.execute(
            """SELECT path FROM parts.documents JOIN parts.revisions AS r USING (doc)
            WHERE doc BETWEEN $1 AND $2 ORDER BY r.chunks DESC""",
            [worn.first_doc, worn.next_doc - 1],
        ).fetchall()
    for changed in ([path for (path,) in inside[: len(inside) // 2 + 1]], ["new.md"]):
        # The file of the version before keeps its segments until it is the next one.
        library.publish({path: ["replaced"] for path in changed})
        refresh(library)
    after = files_of(library)
    assert worn.name + ".duckdb" not in after
    assert len(before.items() & after.items()) == len(before) - 1
    with closing(folder(library).open(library.lake.snapshot())) as opened:
        assert opened.connection.execute(
            "SELECT count(*) FROM parts.chunks ANTI JOIN parts.dead USING (doc)"
        ).fetchall() == (opened.connection.execute("SELECT count(*) FROM parts.chunks").fetchall())
        with closing(in_memory(library.lake.snapshot(), "none")) as anew:
            assert answers(opened.connection) == answers(anew.connection)


@pytest.mark.parametrize("damage", ["cut", "noise", "gone"])
def test_damaged_segment_is_built_again(library, damage):
    wanted = library.search("oak")
    file = segment_files(folder(library).path)[0]
    if damage == "gone":
        file.unlink()
    else:
        content = bytearray(file.read_bytes())
        if damage == "cut":
            del content[len(content) // 2 :]
        else:
            content[20_000:] = b"\xa5" * (len(content) - 20_000)
        file.write_bytes(content)
    library.publish({"new.md": ["unlike all others"]})
    # The other index file needs the segment, too.
    assert [text for text, _ in library.search("oak")] == [text for text, _ in wanted]
    assert disagreements(library.lake.snapshot(), library.settings)[1] == []


def test_readers_in_other_processes_go_on_while_segments_come_and_go(tmp_path, monkeypatch):
    monkeypatch.setattr(wear, "WORN_ROWS", 1)
    shelf = divided(tmp_path / "corpus", 4)
    names = set()

    def publish(turn):
        shelf.publish({path: [f"turn {turn}"] for path in ("a.md", "b.md", "c.md")})
        names.update(refresh(shelf).segments)

    publish(1)
    command = [sys.executable, "-m", "tests.storage.reading_process", str(shelf.root)]
    readers = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    try:
        for turn in range(2, 16):
            publish(turn)
    finally:
        (tmp_path / "stop").touch()
        ends = [reader.communicate(timeout=120) for reader in readers]
    assert [(reader.returncode, errors) for reader, (_, errors) in zip(readers, ends, strict=True)] == [(0, "")] * 3
    for output, _ in ends:
        saw = json.loads(output)
        assert saw["mixed"] == []
        assert saw["seen"][-1] == 15
        assert max(saw["handles"]) == saw["handles"][0]
    # Segments were closed, written again and deleted meanwhile.
    assert len(names) > len(files_of(shelf)) + 3


def test_segments_that_no_index_needs_are_deleted(library):
    left = folder(library).path / "segment_0123456789abcdef.duckdb"
    left.write_bytes(b"of a refresh that was killed")
    needed = files_of(library).keys() - {left.name}
    library.publish({"new.md": ["oak"]})
    refresh(library)
    assert files_of(library).keys() == needed


def test_names_that_are_none_get_neither_into_sql_nor_into_paths(library, tmp_path, monkeypatch):
    """An index lies beside its corpus, where others may write."""
    wanted, newest = library.search("oak"), folder(library).newest()
    newest.lease.write_text("../../mine\nsegment_0\n", "ascii")
    assert newest.segments == ()
    with attached(newest.path, read_only=False) as connection:
        stolen = "x; COPY (SELECT 1) TO 'stolen.csv'; --"
        connection.execute("UPDATE parts.segments SET name = $1", [stolen])
    monkeypatch.chdir(tmp_path)
    segment_files(newest.path.parent)[0].rename(newest.path.with_name(f"{stolen}.duckdb"))
    assert [text for text, _ in library.search("oak")] == [text for text, _ in wanted]
    assert not (tmp_path / "stolen.csv").exists()
    assert disagreements(library.lake.snapshot(), library.settings) == (1, [])


def test_any_duckdb_reads_an_index_with_its_segments_attached(library):
    newest = folder(library).newest()
    with duckdb.connect() as connection:
        for name in newest.segments:
            connection.execute(f"ATTACH '{newest.path.with_name(name)}.duckdb' (READ_ONLY)")
        connection.execute(f"ATTACH '{newest.path}' AS kb (READ_ONLY)")
        ((count,),) = connection.execute("SELECT count(*) FROM kb.chunks").fetchall()
        assert count == sum(len(chunks) for chunks in LIBRARY.values())
        connection.execute("USE kb")
        found = connection.execute("SELECT text, score FROM search_text('oak', k := 5)").fetchall()
    assert found
    assert sorted(found) == sorted(library.search("oak"))


def test_nothing_of_an_erased_document_is_left_in_a_segment(library):
    library.publish({"secret.md": ["zanzibar", *(f"filler {number}" for number in range(40))]})
    refresh(library)
    assert any(b"zanzibar" in file.read_bytes() for file in segment_files(folder(library).path))


def test_space_that_closing_a_segment_takes_is_estimated(library):
    far, near = (
        IndexFolder(library.lake.layout, library.settings.model_copy(update={"segment_chunks": chunks}))
        for chunks in (10**8, 1)
    )
    assert index_bytes(near, 10**6) == index_bytes(far, 10**6) + near.newest().own_bytes


def test_bytes_of_an_index_are_told_though_a_segment_is_gone(library):
    newest = folder(library).newest()
    gone = segment_files(folder(library).path)[0]
    before, size = newest.bytes, gone.stat().st_size
    gone.unlink()
    assert newest.bytes == before - size


def test_segment_is_written_in_as_much_memory_as_the_sort_of_its_postings_takes(library, tmp_path):
    limits = []

    def made(connection):
        build(connection, library.lake.snapshot(), "none", Division(tmp_path, 20), lambda *_: "128MB")
        limits.append(connection.execute("SELECT current_setting('memory_limit')").fetchall())
        connection.execute("SET memory_limit = '1GB'")
        limits.append(connection.execute("SELECT current_setting('memory_limit')").fetchall())
        return False

    assert written(tmp_path / "index.duckdb", made, "64MB")
    assert limits[0] == limits[1]
