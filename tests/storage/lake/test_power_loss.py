"""After a power cut at any moment, the last version reported as published is there, or a later one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from parquetry.planning.rows import new_stamp
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import SearchSettings, parse_settings
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.staging import make_checkpoint
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.maintenance.erasure import forget_user
from tests.power_loss import State, digest, recorded, survived
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

OAK, ELM, ASH, FIR = "The oak is dried.", "The elm is sawn.", "Ash bends.", "Fir is light."


def held(corpus: Path) -> dict[str, str]:
    """Return the texts of a corpus by path, checked to be equal by search and by the tables."""
    if not Lake.exists(str(corpus)):
        return {}
    settings = parse_settings({"corpus": {"root": str(corpus)}}, "test")
    with closing(Reader(settings)) as reader:
        if not reader.snapshot.version:
            return {}
        texts = dict(
            reader.tables.execute("SELECT path, text FROM documents JOIN all_texts USING (revision)").fetchall()
        )
        hits = reader.search(SearchRequest("oak elm ash fir", mode="text", k=50)).hits
    assert {hit.row["path"]: hit.row["text"] for hit in hits} == texts
    return texts


def healthy_in(left: Path) -> Callable[[State], dict[str, str]]:
    """Return a function that returns the texts of the corpus that is laid out in a folder, found to be healthy."""
    examined: set[str] = set()

    def texts(state: State) -> dict[str, str]:
        tables = digest({path: None if "/index" in path else content for path, content in state.items()})
        if tables not in examined and Lake.exists(str(left / "corpus")):
            examined.add(tables)
            found = examine(Lake(str(left / "corpus")), quick=True).findings
            assert [each for each in found if each.severity == "problem"] == []
        return held(left / "corpus")

    return texts


@pytest.fixture
def left(tmp_path):
    return tmp_path / "left"


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def workshop(tmp_path, place):
    made = Workshop(tmp_path / "all")
    made.sections["corpus"] = {"root": str(place / "corpus")}
    made.write("oak.md", OAK)
    made.write("elm.md", ELM)
    return made


@pytest.fixture
def ada(tmp_path, place):
    """Publish documents that only one user may see."""
    made = Workshop(tmp_path / "ada")
    made.sections |= {
        "corpus": {"root": str(place / "corpus")},
        "source": {"name": "own", "visibility": "individual", "user_id": "ada"},
    }
    made.write("fir.md", FIR)
    return made


def test_every_publish_is_there_once_it_is_told_of(workshop, place, left):
    truths: list[dict[str, str]] = [{}]
    with recorded(place) as disk:
        for name, text in (("oak.md", OAK), ("oak.md", ASH), ("fir.md", FIR), ("elm.md", None)):
            if text is None:
                (workshop.folder / name).unlink()
            else:
                workshop.write(name, text)
            workshop.refresh(allow_removals=True)
            disk.tell()
            truths.append({each.name: each.read_text() for each in workshop.folder.iterdir()})
    assert truths[-1] == {"oak.md": ASH, "fir.md": FIR}
    assert survived(disk, truths, left, healthy_in(left)) > 100


def test_forgetting_a_user_loses_nothing_of_anybody_else(workshop, ada, place, left):
    workshop.refresh()
    ada.refresh()
    before = held(place / "corpus")
    assert set(before) == {"oak.md", "elm.md", "fir.md"}
    with recorded(place) as disk:
        forget_user(workshop.lake, "ada", new_stamp(), SearchSettings())
        disk.tell()
    after = {"oak.md": OAK, "elm.md": ELM}
    assert survived(disk, [before, after], left, healthy_in(left)) > 50


def test_checkpoint_that_is_cut_short_is_none(workshop, place, left):
    workshop.refresh()
    before = held(place / "corpus")
    with recorded(place) as disk:
        make_checkpoint(workshop.lake.layout, "documents")
        disk.tell()
    assert survived(disk, [before, before], left, healthy_in(left)) == 3
