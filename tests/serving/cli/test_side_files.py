"""An unusable `.parquetry.toml`: its folder stays unchanged, and the rest of the run goes on."""

import os

import pytest

from tests.serving.program import found, settle

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("visibilty = 'public'", "unknown setting visibilty", id="unknown-key"),
        pytest.param("visibility =", "is not valid TOML", id="no-toml"),
        pytest.param(f"tags = {'[' * 30_000}", "nested deeper than 100 levels", id="deep-lists"),
        pytest.param(f"{'a.' * 30_000}b = 1", "nested deeper than 100 levels", id="deep-keys"),
        pytest.param(f"[{'a.' * 30_000}b]", "nested deeper than 100 levels", id="deep-tables"),
        pytest.param(f"tags = {'{a=' * 10_000}1", "nested deeper than 100 levels", id="deep-inline-tables"),
        pytest.param(f"tags = {'9' * 5000}", "is not valid TOML", id="long-number"),
        pytest.param("tags = ['x'] #" + "x" * 70_000, "has more than 65536 bytes", id="large"),
        pytest.param(b"\xff\xfe", "is not valid TOML", id="no-utf-8"),
        pytest.param(None, "is not a file", id="pipe"),
        pytest.param((), "is a folder", id="folder"),
        pytest.param("/dev/zero", "cannot be read", id="link"),
    ],
)
def test_its_folder_stays_as_it_was_and_the_rest_goes_on(desk, content, problem):
    desk.write("sub/.parquetry.toml", 'visibility = "organization"\norg_id = "acme"')
    settle(desk)
    file = desk.folder / "docs" / "sub" / ".parquetry.toml"
    file.unlink()
    if content is None:
        os.mkfifo(file)
    elif content == ():
        file.mkdir()
    elif content == "/dev/zero":
        file.symlink_to(content)
    else:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    desk.write("new.md", "The new table is of steel.")
    desk.write("sub/more.md", "More about unpaid leave.")
    planned, done = desk("plan"), desk("refresh", "--direct")
    assert (planned.code, planned.stderr, done.code, done.stderr) == (0, "", 0, "")
    for told in (planned, done):
        (line,) = {each for each in told.stdout.splitlines() if "sub/.parquetry.toml" in each and "Kept" not in each}
        assert problem in line
        assert len(line) < 300
        assert any(each.startswith("Kept: ") for each in told.stdout.splitlines())
    assert found(desk, "steel") == ["The new table is of steel."]
    assert found(desk, "unpaid", "--org", "acme") == ["# Leave of absence\n\nUnpaid, up to six months."]
    assert found(desk, "unpaid", "--user", "bob") == []
    assert desk("refresh", "--direct", "--strict").code == 1
