"""The fuzzer finds faults and saves the inputs."""

import io
import zipfile

import pytest
from hypothesis import strategies as st

from tests.fuzz import fuzzing, seeds
from tests.fuzz.fuzzing import fuzz, keep
from tests.fuzz.mutation import Cut, Delete, File, Flip, Insert, Mutation, Repeat, Splice, mutated


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(fuzzing, "SECONDS", 1)


def test_a_planted_fault_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzzing, "_KEPT", tmp_path)
    monkeypatch.setattr(fuzzing, "SECONDS", 200)

    def check(file):
        assert b"<" not in file.content, keep(file.content, file.name)
        return len(file.content) > 0

    with pytest.raises(AssertionError):
        fuzz(mutated([File(b"abc", "a.md")]), check, share=1)
    (smallest,) = {min((file.read_bytes() for file in tmp_path.iterdir()), key=len)}
    assert len(smallest) < 40


def test_inputs_are_counted_by_what_comes_of_them():
    assert {*fuzz(st.booleans(), lambda value: f"it is {value}", share=1)} == {"it is True", "it is False"}


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (Flip(0.5, 0), b"abbd"),
        (Flip(1, 0), b"abcd"),
        (Insert(0.5, b"-", 3), b"ab---cd"),
        (Delete(0.25, 2), b"ad"),
        (Repeat(0, 2, 2), b"abababcd"),
        (Cut(0.75), b"abc"),
        (Splice(1, 0.5, 9), b"abcdyz"),
    ],
)
def test_steps(step, left):
    assert step(b"abcd", b"wxyz") == left


def test_a_member_of_an_archive_is_changed_within_it():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.xml", "<a/>")
        archive.writestr("b.xml", "<b/>")
    changed = Mutation((Insert(1, b"!", 2),), 0.9)(out.getvalue(), b"")
    with zipfile.ZipFile(io.BytesIO(changed)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"a.xml": b"<a/>", "b.xml": b"<b/>!!"}


@pytest.mark.slow
def test_there_are_seeds_of_every_kind(tmp_path, monkeypatch):
    for number in range(500):
        (tmp_path / f"{number}.txt").write_text("x")
    (tmp_path / "one.csv").write_text("x")
    (tmp_path / "empty.csv").write_text("")
    monkeypatch.setattr(seeds, "FILES", str(tmp_path))
    own = seeds.own()
    assert [len(own), own[-1].name == "one.csv" or own[0].name == "one.csv"] == [201, True]
    assert {".pdf", ".docx", ".eml", ".epub", ".xlsx", ".html"} <= {
        f".{file.name.rsplit('.')[-1]}" for file in seeds.documents()
    }
    assert len(seeds.transcripts()) > 15
    assert len(seeds.settings()) == 3
