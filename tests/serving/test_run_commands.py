"""Commands that write: what they report, their exit codes, and that nothing is lost when they cannot finish."""

import json
import os
import resource
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from knowledge.settings import load_settings
from storage import schema
from storage.lake import Lake
from tests.permissions import obey_permissions

COUNTS = ["scanned", "added", "changed", "moved", "permissions", "unchanged", "removed", "failed", "skipped"]
PROGRAM = "import sys; sys.path[:0] = {path!r}; from serving.cli import main; main()"


def command(*arguments):
    """The real program, in a process of its own."""
    return [sys.executable, "-c", PROGRAM.format(path=[*filter(None, sys.path)]), *map(str, arguments)]


def start(*arguments, **options):
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, **options)


def settle(desk):
    """Publish what the copied folder's new place changes, so that a test sees its own changes alone."""
    assert desk("refresh", "--direct").code == 0


def found(desk, query, *options):
    return [each["text"] for each in desk("search", query, "--mode", "text", "--json", *options).json["results"]]


# --- init


def test_init_writes_a_file_that_loads_and_never_writes_over_one(desk):
    told = desk("init", "new.toml")
    assert (told.code, told.stderr) == (0, "")
    assert "parquetry plan" in told.stdout
    assert tomllib.loads((desk.folder / "new.toml").read_text())
    load_settings(desk.folder / "new.toml")
    again = desk("init", "new.toml")
    assert (again.code, again.complaint) == (2, "new.toml exists already; edit it, or name another file")
    assert desk("init", "nowhere/new.toml").complaint == "nowhere/new.toml cannot be written: No such file or directory"


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
    assert desk("reindex", "--direct").complaint == "name the documents to reindex, or give --all"
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
    assert desk("restore", "--version", 1).stdout.startswith("1 documents are as they were at version 1, 0 ")


def test_doctor_ends_with_1_where_something_is_broken(desk):
    healthy = desk("doctor")
    assert (healthy.code, "is healthy: 6 documents and 4 chunks" in healthy.stdout) == (0, True), healthy.stdout
    assert desk("doctor", "--json", "--all").json["healthy"] is True
    next((desk.folder / "corpus" / "chunks").glob("*.parquet")).unlink()
    broken = desk("doctor")
    assert broken.code == 1
    assert "problem missing-file: 1 files of chunks are gone" in broken.stdout
    assert "is damaged" in broken.stdout
    told = desk("doctor", "--json")
    assert (told.code, told.json["healthy"]) == (1, False)
    search = desk("search", "oak")
    assert (search.code, "`parquetry doctor` tells what is damaged" in search.complaint) == (4, True)


# --- wrong input: one line, the right code, nothing lost


def still_whole(desk):
    """The version before is readable, and the next run finishes what could not be done."""
    assert found(desk, "oak table") == ["The oak table has four legs and costs 700 euros."]
    assert desk("doctor").code == 0
    report = desk("refresh", "--direct", "--json")
    assert report.code == 0
    counts = report.json["documents"]
    assert counts["scanned"] == sum(counts[name] for name in COUNTS[1:]) - counts["removed"]
    assert desk("doctor").code == 0
    assert desk("plan", "--json").json["documents"]["unchanged"] == counts["scanned"] - 2


@pytest.mark.parametrize(
    ("change", "code", "problem"),
    [
        pytest.param(
            lambda folder: (folder / "docs").rename(folder / "away"), 2, "does not exist", id="missing-folder"
        ),
        pytest.param(
            lambda folder: (folder / "parquetry.toml").write_text("[chunking]\nsise = 5\n"),
            2,
            "parquetry.toml: unknown setting chunking.sise; did you mean chunking.size?",
            id="unknown-setting",
        ),
        pytest.param(
            lambda folder: (folder / "parquetry.toml").write_text("[corpus\n"), 2, "is not valid TOML", id="not-toml"
        ),
        pytest.param(
            lambda folder: (folder / "parquetry.toml").write_text(
                '[corpus]\nembedder = "magic"\n[[source]]\nname="a"\nuri="docs"\n'
            ),
            2,
            "corpus.embedder is 'magic', which is not an embedder",
            id="unknown-embedder",
        ),
    ],
)
@pytest.mark.parametrize("run", [("refresh", "--direct"), ("plan",)], ids=["refresh", "plan"])
def test_wrong_input_is_one_line_and_changes_nothing(desk, change, code, problem, run):
    settings = (desk.folder / "parquetry.toml").read_text()
    change(desk.folder)
    told = desk(*run)
    assert (told.code, told.stdout) == (code, "")
    assert problem in told.complaint
    (desk.folder / "parquetry.toml").write_text(settings)
    if (desk.folder / "away").exists():
        (desk.folder / "away").rename(desk.folder / "docs")
    still_whole(desk)


def test_target_that_does_not_exist_names_the_sources(desk):
    told = desk("refresh", "--direct", "nowhere")
    assert (told.code, told.complaint) == (2, "nowhere is neither a folder or file nor the name of a source (docs)")


def test_corpus_of_a_newer_schema_is_refused_by_every_command(desk, monkeypatch):
    log = desk.folder / "corpus" / "documents" / "_delta_log" / "00000000000000000000.json"
    now, newer = (rf"\"parquetry_schema\": {version}" for version in (schema.SCHEMA_VERSION, schema.SCHEMA_VERSION + 1))
    assert now in log.read_text()
    log.write_text(log.read_text().replace(now, newer))
    commands = [("search", "x"), ("sql", "SELECT 1"), ("documents",), ("history",), ("refresh", "--direct"), ("plan",)]
    for run in [*commands, ("doctor",), ("restore", "--version", "1"), ("remove", "oak.txt"), ("reindex", "--all")]:
        told = desk(*run)
        assert told.code == 2, run
        assert "newer than this program understands" in told.complaint
    log.write_text(log.read_text().replace(newer, now))
    still_whole(desk)


def test_unreadable_file_fails_alone_and_is_tried_again(desk):
    settle(desk)
    desk.write("oak.txt", "The oak table is locked away.")
    desk.write("new.md", "Something new.")
    (desk.folder / "docs" / "oak.txt").chmod(0)
    done = start("refresh", "--direct", "--json", cwd=desk.folder, preexec_fn=obey_permissions)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["documents"]["failed"], report["documents"]["added"]) == (2, 1)
    (failure,) = [each for each in report["failures"] if each["uri"].endswith("oak.txt")]
    assert (failure["stage"], failure["reason"]) == ("fetch", "unreadable")
    assert found(desk, "oak table") == ["The oak table has four legs and costs 700 euros."]
    (desk.folder / "docs" / "oak.txt").chmod(0o644)
    assert desk("refresh", "--direct", "--json").json["documents"]["changed"] == 1
    assert found(desk, "oak table") == ["The oak table is locked away."]


def test_folder_that_may_not_be_listed_loses_no_document(desk):
    settle(desk)
    (desk.folder / "docs" / "sub").chmod(0)
    done = start("refresh", "--direct", "--json", cwd=desk.folder, preexec_fn=obey_permissions)
    (desk.folder / "docs" / "sub").chmod(0o755)
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr, report["documents"]["removed"]) == (0, "", 0)
    assert any("sub: cannot list" in warning for warning in report["warnings"])
    assert found(desk, "unpaid") != []


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(("refresh", "--direct"), id="refresh"),
        pytest.param(("refresh", "--direct", "--corpus", "closed/kb"), id="new-corpus"),
        pytest.param(("remove", "oak.txt"), id="remove"),
        pytest.param(("restore", "--version", "1"), id="restore"),
    ],
)
def test_corpus_that_may_not_be_written_is_one_line_and_changes_nothing(desk, run):
    desk.write("new.md", "Something new.")
    folders = [desk.folder / "corpus", desk.folder / "closed", *(desk.folder / "corpus").rglob("*/")]
    (desk.folder / "closed").mkdir()
    for folder in folders:
        folder.chmod(0o555)
    done = start(*run, cwd=desk.folder, preexec_fn=obey_permissions)
    for folder in folders:
        folder.chmod(0o755)
    assert (done.returncode, done.stdout) == (4, ""), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert ("no permission to write to" if "closed/kb" not in run else "cannot be opened") in done.stderr
    still_whole(desk)


def full_disk(limit):
    """No file may grow beyond `limit` bytes, which is what a full disk looks like to every writer."""

    def before():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return before


@pytest.mark.parametrize("limit", [0, 600, 3000, 8000])
def test_full_disk_at_any_write_ends_with_4_and_loses_nothing(desk, limit):
    desk.write("new.md", "\n\n".join(f"Paragraph {number} of something new." for number in range(150)))
    done = start("refresh", "--direct", cwd=desk.folder, preexec_fn=full_disk(limit))
    if done.returncode == 0:
        assert limit >= 8000, "the limit was not met at all"
        return
    assert (done.returncode, done.stdout) == (4, ""), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("parquetry: ")
    still_whole(desk)


def test_two_refreshes_at_once_both_end_well_and_lose_nothing(desk):
    settle(desk)
    for number in range(30):
        desk.write(f"left/{number}.txt", f"Left number {number}.")
        desk.write(f"right/{number}.txt", f"Right number {number}.")
    runs = [
        subprocess.Popen(
            command("refresh", "--direct", "--json", *targets),
            cwd=desk.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for targets in (("docs",), ("docs/left",), ("docs/right",))
    ]
    reports = []
    for each in runs:
        out, err = each.communicate()
        assert (each.returncode, err) == (0, "")
        reports.append(json.loads(out))
    assert sum(report["documents"]["added"] for report in reports) == 60
    for report in reports:
        counts = report["documents"]
        assert counts["scanned"] == sum(counts[name] for name in COUNTS[1:]) - counts["removed"]
    documents = desk("documents", "--json").json["documents"]
    assert sorted(each["path"] for each in documents if each["path"].startswith(("left", "right"))) == sorted(
        f"{side}/{number}.txt" for side in ("left", "right") for number in range(30)
    )
    assert desk("doctor", "--all").code == 0
    assert desk("refresh", "--direct", "--json").json["documents"]["unchanged"] == 64


def test_reader_that_has_seen_enough_is_no_error(desk):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command("documents"), stdout=writer, stderr=subprocess.PIPE, text=True, check=False, cwd=desk.folder
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_interrupted_command_says_that_nothing_was_published(desk, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Lake, "snapshot", interrupted)
    told = desk("history")
    assert desk("search", "x").code == 130
    assert told.code in (0, 130)
