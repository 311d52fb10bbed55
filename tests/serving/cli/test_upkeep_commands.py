"""The commands `tag`, `compact` and `vacuum`."""

from pathlib import Path

import pytest

from parquetry import Corpus, connect
from tests.serving.program import found

pytestmark = pytest.mark.slow


def oak(desk, *options):
    return next(result["text"] for result in desk("search", "oak table", "--json", *options).json["results"])


def test_tag_names_a_version_wherever_a_command_takes_one(desk):
    assert desk("tag", "first", "--version", "1").stdout == "Corpus corpus: tag first names version 1.\n"
    assert desk("tag", "now").code == 0
    assert oak(desk, "--version", "first") == "The oak table has four legs and costs 640 euros."
    assert oak(desk, "--version", "now") == oak(desk) == "The oak table has four legs and costs 700 euros."
    texts = desk("sql", "SELECT text FROM texts WHERE text LIKE '%oak%'", "--version", "first", "--json").json["rows"]
    assert texts == [["The oak table has four legs and costs 640 euros."]]
    for command in (["documents"], ["show", "oak.txt"], ["chunks", "oak.txt"], ["entries"], ["decisions"]):
        assert desk(*command, "--version", "first", "--json").json["version"] == 1
    assert desk("restore", "--version", "first", "--json").json["restored_version"] == 1
    assert oak(desk) == "The oak table has four legs and costs 640 euros."


def test_tags_are_listed_and_deleted(desk):
    assert desk("tag", "--json").json == {"tags": []}
    desk("tag", "first", "--version", "1")
    (tag,) = desk("tag", "--json").json["tags"]
    assert (tag["name"], tag["version"]) == ("first", 1)
    assert "first" in desk("tag").stdout
    newest, first, empty = desk("history", "--json").json["versions"]
    assert [each["tags"] for each in (newest, first, empty)] == [[], ["first"], []]
    assert "first" in desk("history").stdout
    assert desk("tag", "first", "--delete").stdout == "Corpus corpus: deleted tag first.\n"
    assert desk("tag", "--json").json == {"tags": []}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tag", "7"], "tag '7': a name has letters, digits, dots, dashes and underscores, and not only digits"),
        (["tag", "late", "--version", "9"], "corpus corpus has no version 9; it has 0 to 2"),
        (["tag", "late", "--version", "adit"], "corpus corpus has no tag 'adit'; it has none"),
        (["tag", "--delete"], "--delete and --version go with the name of a tag"),
        (["tag", "a", "--delete", "--version", "1"], "--delete takes the name of a tag, and no --version"),
        (["tag", "adit", "--delete"], "corpus corpus has no tag 'adit'; it has none"),
        (["search", "oak", "--version", "adit"], "corpus corpus has no tag 'adit'; it has none"),
        (["compact", "--corpus", "nowhere"], "no corpus at"),
        (["vacuum", "--corpus", "nowhere"], "no corpus at"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(desk, arguments, told):
    refused = desk(*arguments)
    assert refused.code == 2
    assert told in refused.complaint.replace(f"{desk.folder}/", "")


def test_python_reads_by_tag(desk):
    desk("tag", "first", "--version", "1")
    with Corpus("parquetry.toml", version="first") as corpus:
        assert corpus.version == 1
    with connect("corpus", version="first") as connection:
        assert connection.sql("SELECT count(*) FROM texts WHERE text LIKE '%640%'").fetchall() == [(1,)]


def test_compaction_and_vacuum_tell_what_they_did_and_change_no_answer(desk):
    before = found(desk, "oak")
    told = desk("compact").stdout
    assert "texts: 2 files written as 1.\n" in told
    assert "Corpus corpus: version 3; versions from 0 on and those with a tag are kept.\n" in told.replace(
        f"{desk.folder}/", ""
    )
    assert found(desk, "oak") == before
    assert desk("compact").stdout.endswith("nothing to compact.\n")
    assert desk("history", "--json").json["versions"][0]["kind"] == "compact"
    dry = desk("vacuum", "--dry-run", "--json").json
    assert (dry["run_id"], dry["files"], dry["oldest_version"]) == (None, [], 0)
    assert "0 files of" in desk("vacuum").stdout
    checkup = desk("doctor", "--json").json
    assert [each["check"] for each in checkup["findings"]] == ["replaced"]
    assert oak(desk, "--version", "1") == "The oak table has four legs and costs 640 euros."


def test_compaction_as_json(desk):
    told = desk("compact", "--json").json
    assert (told["version_before"], told["version"], told["oldest_version"], told["rows_dropped"]) == (2, 3, 0, {})
    assert told["files_before"].keys() == told["files_after"].keys() >= {"documents", "texts", "chunks", "runs"}
    assert set(told["files_after"].values()) == {1}
    assert told["index_error"] is None
    assert len(list(Path("corpus/chunks").glob("*-compacted-*.parquet"))) == 1
