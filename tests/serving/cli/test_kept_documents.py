"""Documents that are kept because part of their source was not visible: reported, and counted by place."""

import json

import pytest

from tests.permissions import obey_permissions
from tests.serving.program import settle, start

pytestmark = pytest.mark.slow


@pytest.fixture
def house(desk):
    """Create a source with a part that is closed to users bound by permissions."""
    for name in ("a", "b", "deep/c"):
        desk.write(f"private/{name}.md", f"# {name}\n\nOnly for us.\n")
    desk.write("open/d.md", "# d\n\nFor all.\n")
    settle(desk)
    closed = desk.folder / "docs" / "private"
    closed.chmod(0)
    yield desk
    closed.chmod(0o755)


def run(desk, *arguments):
    result = start(*arguments, cwd=desk.folder, preexec_fn=obey_permissions)
    assert (result.returncode, result.stderr) == (0, ""), result
    return result.stdout


def lines(printed):
    return [line for line in printed.splitlines() if line.startswith("Kept: ")]


@pytest.mark.parametrize("command", [["plan"], ["refresh", "--direct"]], ids=["plan", "refresh"])
def test_removals_that_a_closed_folder_holds_back_are_a_line_of_the_summary(house, command):
    docs = house.folder / "docs"
    (docs / "open" / "d.md").unlink()
    assert lines(run(house, *command)) == [
        f"Kept: 3 documents below docs/private were kept: cannot list {docs}/private: Permission denied.",
        "Kept: 1 document of docs was kept: not found, but not all of the source could be seen.",
    ]
    assert len(house("documents", "--json").json["documents"]) == 10


@pytest.mark.parametrize("command", [["plan"], ["refresh", "--direct"]], ids=["plan", "refresh"])
def test_programs_get_them_as_objects(house, command):
    assert json.loads(run(house, *command, "--json"))["kept"] == [
        {
            "namespace": "default",
            "source": "docs",
            "path": "private",
            "documents": 3,
            "detail": f"cannot list {house.folder}/docs/private: Permission denied",
        }
    ]


def test_name_of_a_folder_cannot_write_on_the_terminal(house):
    folder = house.folder / "docs" / "private"
    folder.chmod(0o755)
    bell = folder / "bell\a\nnew line"
    (folder / "deep").rename(bell)
    assert house("refresh", "--direct").code == 0
    bell.chmod(0)
    (line,) = lines(run(house, "refresh", "--direct"))
    bell.chmod(0o755)
    assert line.startswith("Kept: 1 document below docs/private/bell\\u{7}\\u{a}new line was kept: ")


def test_nothing_is_said_of_what_can_be_seen(house):
    (house.folder / "docs" / "private").chmod(0o755)
    assert json.loads(run(house, "refresh", "--direct", "--json"))["kept"] == []
    (house.folder / "docs" / "private" / "a.md").unlink()
    printed = run(house, "refresh", "--direct")
    assert (lines(printed), "1 removed" in printed) == ([], True)


def test_part_of_a_source_tells_what_is_kept_of_it(house):
    (house.folder / "docs" / "private").chmod(0o755)
    (house.folder / "docs" / "private" / "deep").chmod(0)
    (house.folder / "docs" / "open" / "d.md").unlink()
    (kept,) = json.loads(run(house, "refresh", "--direct", "--json", "docs/private"))["kept"]
    assert (kept["path"], kept["documents"]) == ("private/deep", 1)
    (house.folder / "docs" / "private" / "deep").chmod(0o755)


def test_archive_that_cannot_be_opened_keeps_its_members(desk):
    import zipfile

    with zipfile.ZipFile(desk.folder / "docs" / "box.zip", "w") as archive:
        archive.writestr("a.md", "# a\n\nIn the box.\n")
        archive.writestr("b.md", "# b\n\nIn the box.\n")
    settle(desk)
    desk.write("box.zip", "cut")
    report = desk("refresh", "--direct", "--json").json
    assert [(each["path"], each["documents"]) for each in report["kept"]] == [("box.zip", 2)]
    assert "Kept: 2 documents below docs/box.zip were kept: cannot be opened: " in desk("plan").stdout
