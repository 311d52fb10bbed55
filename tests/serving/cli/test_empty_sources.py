"""An empty source is reported: it may really be empty, or its name mistyped."""

import json

import pytest

from parquetry.serving.cli.main import run
from tests.servers.seaweed import S3Server

FOUND_NOTHING = "no document was found in"


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    """Return a function that runs a command in a folder, checks that it succeeds, and returns its output."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        assert run([*arguments, "--corpus", "corpus"]) == 0
        return capsys.readouterr().out

    return command


def warnings(printed):
    return [line.removeprefix("Warning: ") for line in printed.splitlines() if line.startswith("Warning: ")]


@pytest.mark.parametrize("name", ["plan", "refresh"])
def test_empty_folder_is_one_line_for_people_and_one_for_programs(bench, tmp_path, name):
    (tmp_path / "notes").mkdir()
    direct = ["--direct"] if name == "refresh" else []
    expected = f"{FOUND_NOTHING} {(tmp_path / 'notes').as_uri()}; check its spelling and whether all it holds is hidden"
    assert warnings(bench(name, "notes", *direct)) == [f"{expected}."]
    assert json.loads(bench(name, "notes", "--json", *direct))["warnings"] == [expected]


def test_globs_that_match_nothing_are_named(bench, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("A note.")
    (tmp_path / "parquetry.toml").write_text('[[source]]\nname = "notes"\nuri = "."\ninclude = ["*.pfd"]\n')
    (line,) = warnings(bench("plan"))
    assert line.startswith(f"source notes: {FOUND_NOTHING} ")
    assert "its include and exclude globs" in line


def test_mistyped_prefix_of_a_bucket_is_named(bench, monkeypatch, s3_server: S3Server):
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    bucket = s3_server.bucket()
    s3_server.put(bucket, "notes/a.md", "A note.")
    expected = f"{FOUND_NOTHING} s3://{bucket}/ntoes/; check its spelling and what the credentials may see"
    assert warnings(bench("plan", f"s3://{bucket}/ntoes/")) == [f"{expected}."]
    assert warnings(bench("plan", f"s3://{bucket}/notes/")) == []


def test_source_that_lost_its_documents_says_what_it_loses_instead(bench, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("A note.")
    assert warnings(bench("refresh", "notes", "--direct")) == []
    (tmp_path / "notes/a.md").unlink()
    printed = bench("refresh", "notes", "--direct", "--allow-removals")
    assert (warnings(printed), "1 removed" in printed) == ([], True)
