"""Wrong input: one line, the right exit code, no data loss."""

import json
import os
import resource
import subprocess

import pytest

from parquetry.storage.files.layout import SCHEMA_VERSION
from parquetry.storage.lake.lake import Lake
from tests.commits_by_hand import rewrite_commit
from tests.permissions import obey_permissions
from tests.serving.program import COUNTS, command, found, settle, start

pytestmark = pytest.mark.slow


def still_whole(desk):
    """Check that the earlier version is readable, and that the next run finishes the failed work."""
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
            "the settings name 'magic', which is not an embedder",
            id="unknown-embedder",
        ),
        pytest.param(
            lambda folder: (folder / "parquetry.toml").write_text(
                '[[source]]\nname="a"\nuri="docs"\nschedule="every night"\n'
            ),
            2,
            "schedule 'every night' of source 'a' is not a cron expression; '0 3 * * *' is every night",
            id="wrong-schedule",
        ),
    ],
)
def test_wrong_input_is_one_line_and_changes_nothing(desk, change, code, problem):
    settings = (desk.folder / "parquetry.toml").read_text()
    change(desk.folder)
    for run in (("refresh", "--direct"), ("plan",)):
        told = desk(*run)
        assert (told.code, told.stdout) == (code, ""), run
        assert problem in told.complaint, run
    (desk.folder / "parquetry.toml").write_text(settings)
    if (desk.folder / "away").exists():
        (desk.folder / "away").rename(desk.folder / "docs")
    still_whole(desk)


def test_target_that_does_not_exist_names_the_sources(desk):
    told = desk("refresh", "--direct", "nowhere")
    assert (told.code, told.complaint) == (2, "nowhere is neither a folder or file nor the name of a source (docs)")


def test_corpus_of_a_newer_schema_is_refused_by_every_command(desk, monkeypatch):
    log = desk.folder / "corpus" / "documents" / "_delta_log" / "00000000000000000000.json"
    now, newer = (rf"\"parquetry_schema\": {version}" for version in (SCHEMA_VERSION, SCHEMA_VERSION + 1))
    rewrite_commit(log, now, newer)
    commands = [("search", "x"), ("sql", "SELECT 1"), ("documents",), ("history",), ("refresh", "--direct"), ("plan",)]
    for run in [*commands, ("doctor",), ("restore", "--version", "1"), ("remove", "oak.txt"), ("reindex", "--all")]:
        told = desk(*run)
        assert told.code == 2, run
        assert "newer than this program understands" in told.complaint
    rewrite_commit(log, newer, now)
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
    """Limit files to `limit` bytes, which looks like a full disk to every writer."""

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


def test_credentials_in_what_was_typed_are_not_repeated(desk):
    told = desk("documents", "--corpus", "s3://reader:swordfish@bucket/kb").complaint
    assert "s3://reader:***@bucket/kb" in told
    assert "swordfish" not in told


def test_reader_that_has_seen_enough_is_no_error(desk):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command("documents"), stdout=writer, stderr=subprocess.PIPE, text=True, check=False, cwd=desk.folder
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_interrupted_command_says_that_nothing_was_published(desk, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Lake, "snapshot", interrupted)
    told = desk("history")
    assert desk("search", "x").code == 130
    assert told.code in (0, 130)
