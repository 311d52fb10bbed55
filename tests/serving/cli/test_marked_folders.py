r"""Folders with names that end like the mark of an archive, `box.zip!`, remain folders."""

import zipfile

import pytest

from tests.serving.program import found

pytestmark = pytest.mark.slow

FOLDER, MEMBER, PLAIN = "The oak is in the folder.", "The elm is in the archive.", "The ash is beside them."
NAMES = ["box.zip!", "box.tar!", "Box.ZIP!", "box.tar.gz!"]


@pytest.fixture
def bench(desk):
    """Create a source in which a folder may have the name of an archive's interior."""
    for each in sorted((desk.folder / "docs").rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()
    desk.write("plain.md", PLAIN)
    return desk


def pack(desk, **members):
    with zipfile.ZipFile(desk.folder / "docs" / "box.zip", "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "."), text)


def refresh(desk, *options):
    result = desk("refresh", "--direct", "--json", "--allow-removals", *options)
    assert (result.code, result.json["failures"]) == (0, []), result
    return {name: count for name, count in result.json["documents"].items() if count and name != "scanned"}


def paths(desk, *options):
    return [each["path"] for each in desk("documents", "--json", *options).json["documents"]]


@pytest.mark.parametrize("name", NAMES)
def test_files_of_such_a_folder_are_found_changed_and_removed(bench, name):
    bench.write(f"{name}/a.md", FOLDER)
    refresh(bench)
    escaped = name.replace("!", r"\x21")
    assert paths(bench) == [rf"{escaped}/a.md", "plain.md"]
    assert found(bench, "oak folder", "--filename", f"{name}/*") == [FOLDER]
    assert refresh(bench) == {"unchanged": 2}
    bench.write(f"{name}/a.md", "The oak left.")
    assert refresh(bench) == {"changed": 1, "unchanged": 1}
    (bench.folder / "docs" / name / "a.md").unlink()
    assert refresh(bench) == {"removed": 1, "unchanged": 1}
    assert paths(bench) == ["plain.md"]


def test_an_archive_beside_it_has_documents_of_its_own(bench):
    bench.write("box.zip!/a.md", FOLDER)
    pack(bench, a__md=MEMBER)
    refresh(bench)
    assert paths(bench) == ["box.zip!/a.md", r"box.zip\x21/a.md", "plain.md"]
    assert found(bench, "elm archive")[0] == MEMBER
    assert found(bench, "oak folder")[0] == FOLDER
    assert refresh(bench) == {"unchanged": 3}
    (bench.folder / "docs" / "box.zip").unlink()
    assert refresh(bench) == {"removed": 1, "unchanged": 2}
    assert paths(bench) == [r"box.zip\x21/a.md", "plain.md"]
    pack(bench, a__md=MEMBER)
    (bench.folder / "docs" / "box.zip!" / "a.md").unlink()
    assert refresh(bench) == {"added": 1, "removed": 1, "unchanged": 1}
    assert paths(bench) == ["box.zip!/a.md", "plain.md"]


def test_same_folder_inside_an_archive_is_not_an_archive_inside_it(bench):
    with zipfile.ZipFile(bench.folder / "inner.zip", "w") as archive:
        archive.writestr("a.md", MEMBER)
    pack(bench, **{"inner.zip!/a.md": FOLDER, "inner.zip": (bench.folder / "inner.zip").read_bytes()})
    refresh(bench)
    assert paths(bench) == ["box.zip!/inner.zip!/a.md", r"box.zip!/inner.zip\x21/a.md", "plain.md"]
    assert found(bench, "elm archive")[0] == MEMBER
    assert found(bench, "oak folder")[0] == FOLDER


def test_part_of_a_source_may_be_such_a_folder_or_the_archive_beside_it(bench):
    bench.write("box.zip!/a.md", FOLDER)
    pack(bench, a__md=MEMBER)
    refresh(bench)
    bench.write("box.zip!/a.md", "The oak left.")
    assert refresh(bench, "docs/box.zip") == {"unchanged": 1}
    assert refresh(bench, "docs/box.zip!") == {"changed": 1}
    assert refresh(bench, "docs/box.zip!/a.md") == {"unchanged": 1}
    (bench.folder / "docs" / "box.zip!" / "a.md").unlink()
    assert refresh(bench, "docs/box.zip") == {"unchanged": 1}
    assert refresh(bench, "docs/box.zip!") == {"removed": 1}
    assert paths(bench) == ["box.zip!/a.md", "plain.md"]


@pytest.mark.parametrize("name", [r"box.zip\x21/a.md", "box.zip!/a.md", "box.zip!/*", "docs/box.zip!/a.md"])
def test_file_is_named_as_it_is_listed_or_as_it_is_on_disk(bench, name):
    bench.write("box.zip!/a.md", FOLDER)
    refresh(bench)
    assert FOLDER in bench("show", name).stdout
    assert paths(bench, name) == [r"box.zip\x21/a.md"]
    if not name.startswith("docs/"):
        assert bench("reindex", "--direct", "--json", name).json["documents"]["changed"] == 1
        assert bench("remove", name).code == 0
        assert paths(bench) == ["plain.md"]


def test_name_that_a_member_has_means_the_member(bench):
    bench.write("box.zip!/a.md", FOLDER)
    pack(bench, a__md=MEMBER)
    refresh(bench)
    assert MEMBER in bench("show", "box.zip!/a.md").stdout
    assert bench("reindex", "--direct", "--json", "box.zip!/a.md").json["documents"]["changed"] == 1
    assert bench("remove", "box.zip!/a.md").code == 0
    assert paths(bench) == [r"box.zip\x21/a.md", "plain.md"]
    assert bench("remove", (bench.folder / "docs" / "box.zip!" / "a.md").as_uri()).code == 0
    assert paths(bench) == ["plain.md"]


def test_globs_of_the_settings_name_the_folder_as_it_is(bench):
    bench.write("box.zip!/a.md", FOLDER)
    file = bench.folder / "parquetry.toml"
    file.write_text(file.read_text() + 'exclude = ["box.zip!/"]\n')
    refresh(bench)
    assert paths(bench) == ["plain.md"]


def test_such_a_folder_may_be_a_source_within_another(bench):
    bench.write("box.zip!/a.md", FOLDER)
    pack(bench, a__md=MEMBER)
    file = bench.folder / "parquetry.toml"
    file.write_text(file.read_text() + '[[source]]\nname = "box"\nuri = "docs/box.zip!"\n')
    refresh(bench)
    assert [(each["source"], each["path"]) for each in bench("documents", "--json").json["documents"]] == [
        ("box", "a.md"),
        ("docs", "box.zip!/a.md"),
        ("docs", "plain.md"),
    ]


def test_folder_that_a_mark_alone_tells_from_another_is_no_part_of_that(bench):
    bench.write("wow/a.md", MEMBER)
    bench.write("wow!/a.md", FOLDER)
    refresh(bench)
    assert paths(bench) == ["plain.md", "wow!/a.md", "wow/a.md"]
    assert refresh(bench, "docs/wow") == {"unchanged": 1}
    (bench.folder / "docs" / "wow" / "a.md").unlink()
    assert refresh(bench, "docs/wow") == {"removed": 1}
    assert paths(bench) == ["plain.md", "wow!/a.md"]
    file = bench.folder / "parquetry.toml"
    file.write_text(file.read_text() + '[[source]]\nname = "wow"\nuri = "docs/wow"\n')
    refresh(bench)
    assert paths(bench) == ["plain.md", "wow!/a.md"]
