"""Commands that write: their reports, their exit codes, and no data loss when they cannot finish."""

import shutil
import tomllib
from pathlib import Path

import pytest

from parquetry.settings.sections import load_settings
from tests.serving.program import COUNTS, found, settle

pytestmark = pytest.mark.slow


def test_init_writes_a_file_that_loads_and_never_writes_over_one(desk):
    told = desk("init", "new.toml")
    assert (told.code, told.stderr) == (0, "")
    assert "parquetry plan" in told.stdout
    assert tomllib.loads((desk.folder / "new.toml").read_text())
    load_settings(desk.folder / "new.toml")
    again = desk("init", "new.toml")
    assert (again.code, again.complaint) == (2, "new.toml exists already; edit it, or name another file")
    assert desk("init", "nowhere/new.toml").complaint == "nowhere/new.toml cannot be written: No such file or directory"


def test_init_of_a_file_that_exists_tells_what_is_wrong_in_it(desk):
    """The user edits it next, and would meet the mistake later."""
    file = desk.folder / "new.toml"
    file.write_text('[[source]]\nname = "a"\nuri = "docs"\nschedule = "nightly"\n')
    told = desk("init", "new.toml")
    assert told.code == 2
    assert told.complaint.startswith("new.toml: source[0]: schedule 'nightly' of source 'a' is not a cron expression")
    assert "nightly" in file.read_text()


# --- refresh and plan


def test_refresh_is_one_object_of_the_promised_shape(desk):
    settle(desk)
    desk.write("new.md", "# New\n\nSomething new.\n")
    desk.write("oak.txt", "The oak table is sold.")
    (desk.folder / "docs" / "leave.md").unlink()
    planned = desk("plan", "--json").json
    told = desk("refresh", "--direct", "--json")
    assert (told.code, told.stderr) == (0, "")
    report = told.json
    assert {
        "run_id",
        "version",
        "seconds",
        "documents",
        "chunks",
        "bytes_read",
        "tokens",
        "cost_usd",
        "failures",
    } <= set(report)
    assert list(report["documents"]) == COUNTS
    counts = {name: count for name, count in report["documents"].items() if count}
    assert counts == {
        "scanned": 6,
        "added": 1,
        "changed": 1,
        "unchanged": 2,
        "removed": 1,
        "failed": 1,
        "skipped": 1,
    }
    assert planned["documents"] == report["documents"]
    assert set(planned["estimate"]) == {"chunks", "tokens", "cost_usd", "cost_usd_batch"}
    assert report["chunks"] == {"written": 2, "embedded": 2, "reused": 0}
    assert {(Path(each["uri"]).name, each["stage"], each["reason"]) for each in report["failures"]} == {
        ("broken.docx", "extract", "damaged"),
        ("empty.txt", "extract", "empty"),
    }
    assert all(set(each) >= {"uri", "stage", "reason", "detail"} for each in report["failures"])


def test_refresh_of_the_same_again_changes_nothing(desk):
    settle(desk)
    version = desk("history", "--json").json["versions"][0]["version"]
    report = desk("refresh", "--direct", "--json").json
    assert report["version"] == version
    assert report["documents"]["unchanged"] == 4
    assert (report["bytes_read"], report["chunks"]["written"]) == (0, 0)


def test_refresh_for_people_tells_counts_and_what_failed(desk):
    settle(desk)
    desk.write("new.md", "Something new.")
    told = desk("refresh", "--direct")
    assert told.stderr == ""
    assert "7 documents in " in told.stdout
    assert "1 added" in told.stdout
    assert "published version 4" in told.stdout
    assert "broken.docx: extract/damaged" in told.stdout


def test_plan_writes_nothing_not_even_a_corpus(desk):
    told = desk("plan", "docs", "--corpus", "fresh", "--json")
    assert told.json["documents"]["added"] == 6
    assert not (desk.folder / "fresh").exists()
    assert "added leave.md (new)" in desk("plan", "docs", "--corpus", "fresh").stdout


def test_namespace_chooses_sources_and_never_moves_one(desk):
    """A source without a namespace belongs to the corpus's namespace, regardless of the command line."""
    settle(desk)
    told = desk("refresh", "--direct", "--namespace", "hr")
    assert (told.code, "no source is configured in namespace hr" in told.complaint) == (2, True)
    assert {row["namespace"] for row in desk("documents", "--json").json["documents"]} == {"default"}
    assert desk("refresh", "--direct", "--namespace", "default").code == 0


def test_strict_refresh_with_a_failed_document_ends_with_1(desk):
    assert desk("refresh", "--direct").code == 0
    assert desk("refresh", "--direct", "--strict").code == 1
    (desk.folder / "docs" / "broken.docx").unlink()
    assert desk("refresh", "--direct", "--strict").code == 0


def test_guard_ends_with_3_and_keeps_everything(desk):
    for number in range(12):
        desk.write(f"many/{number}.txt", f"Number {number}.")
    settle(desk)
    for file in (desk.folder / "docs").rglob("*.*"):
        file.unlink()
    for run in (("plan",), ("refresh", "--direct")):
        told = desk(*run, "--json")
        assert told.code == 3
        assert "would lose 18 of 18 documents" in told.json["refused"][0]
        assert told.json["documents"]["removed"] == 0
        assert "--allow-removals" in desk(*run).stdout
    assert found(desk, "holiday") != []
    assert desk("refresh", "--direct", "--allow-removals", "--json").json["documents"]["removed"] == 18
    assert found(desk, "holiday") == []


def test_reindex_needs_to_know_what(desk):
    assert desk("reindex", "--direct").complaint == "name the documents to reindex, or give --all for every document"
    assert desk("reindex", "--direct", "--all", "oak.txt").code == 2
    told = desk("reindex", "--direct", "nothing.md")
    assert (told.code, "is named 'nothing.md'; `parquetry documents` lists them" in told.complaint) == (2, True)


def test_reindex_redoes_what_is_named_with_the_vectors_that_exist(desk):
    settle(desk)
    report = desk("reindex", "--direct", "oak.txt", "--json").json
    assert (report["documents"]["changed"], report["documents"]["scanned"]) == (1, 1)
    assert report["chunks"] == {"written": 1, "embedded": 0, "reused": 1}
    anew = desk("reindex", "--direct", "--all", "--embeddings-only", "--json").json
    assert anew["chunks"]["embedded"] == anew["chunks"]["written"] == 4
    assert anew["bytes_read"] == sum(
        each["size"] for each in desk("documents", "--json", "--status", "failed").json["documents"]
    )


# --- restore, remove, doctor


def test_removed_document_leaves_comes_back_with_restore_and_with_refresh(desk):
    settle(desk)
    told = desk("remove", "oak.txt", "sub/*")
    assert told.code == 0
    assert "removed oak.txt" in told.stdout
    assert "comes back at the next refresh unless its source excludes it" in told.stdout
    assert found(desk, "oak") == []
    assert desk("restore", "--version", 3, "--json").json["documents"] == {"restored": 3, "removed": 0}
    assert found(desk, "oak") != []
    removed = desk("remove", "oak.txt", "--json").json
    assert [Path(uri).name for uri in removed["removed"]] == ["oak.txt"]
    report = desk("refresh", "--direct", "--json").json
    assert report["documents"]["added"] == 1
    assert report["chunks"]["embedded"] == 0
    assert found(desk, "oak") != []


def test_restore_of_what_is_there_says_so(desk):
    assert "nothing to restore" in desk("restore", "--version", 2).stdout
    assert desk("restore", "--version", 1).stdout.startswith("1 document is as it was at version 1, 0 ")


def test_doctor_ends_with_1_where_something_is_broken(desk):
    healthy = desk("doctor")
    assert (healthy.code, "is healthy: 6 documents and 4 chunks" in healthy.stdout) == (0, True), healthy.stdout
    assert desk("doctor", "--json", "--all").json["healthy"] is True
    lost = next((desk.folder / "corpus" / "chunks").glob("*.parquet"))
    lost.unlink()
    broken = desk("doctor")
    assert broken.code == 1
    assert "problem missing-file: files of chunks are gone (1)" in broken.stdout
    assert "is damaged" in broken.stdout
    told = desk("doctor", "--json")
    assert (told.code, told.json["healthy"]) == (1, False)
    assert desk("search", "oak").code == 0, "the index holds all that a search needs"
    shutil.rmtree(desk.folder / "corpus" / "index")
    search = desk("search", "oak")
    assert search.code == 4
    assert f"the corpus is damaged: {lost} is missing" in search.complaint


# --- init from agent files


def test_init_from_agents_writes_sources_that_a_refresh_reads(desk):
    """From a character file to an answer: shared knowledge for all, the rest for the agent alone."""
    (desk.folder / "ada.json").write_text(
        '{"name": "Ada", "knowledge": ["The lift is inspected in May.", {"directory": "docs", "shared": true}]}'
    )
    told = desk("init", "agents.toml", "--from", "ada.json")
    assert (told.code, told.stderr) == (0, "")
    assert "Ada-texts: ./knowledge/Ada (individual Ada)" in told.stdout
    assert "docs: ./docs (public)" in told.stdout
    assert desk("refresh", "--direct", "--config", "agents.toml", "--corpus", "agents", "--json").code == 0
    options = ("--config", "agents.toml", "--corpus", "agents")
    assert found(desk, "lift", *options, "--user", "Ada") == ["The lift is inspected in May."]
    assert found(desk, "lift", *options, "--user", "Bob") == []
    assert len(found(desk, "holiday", *options, "--user", "Bob")) == 1


def test_init_with_a_mistake_in_an_agent_file_writes_nothing(desk):
    (desk.folder / "ada.json").write_text('{"name": "Ada", "knowledge": ["A text.", {"folder": "docs"}]}')
    told = desk("init", "agents.toml", "--from", "ada.json")
    assert told.code == 2
    assert told.complaint.startswith("ada.json: knowledge[1] has no known form")
    assert not (desk.folder / "agents.toml").exists()
    assert not (desk.folder / "knowledge").exists()
    assert desk("init", "parquetry.toml", "--from", "ada.json").complaint.startswith("parquetry.toml exists already")
    assert "--from" in desk("init", "agents.toml", "--org", "acme").complaint
