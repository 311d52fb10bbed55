"""Audit events are whole lines from any number of writers, and hold no more than they should."""

import json
import subprocess
import sys
import threading
from datetime import UTC, datetime

import duckdb
import pytest

from parquetry.serving.access.audit import (
    COLUMNS,
    FILE,
    KEPT_FILES,
    REFUSED_PER_MINUTE,
    AuditEvent,
    AuditLog,
    audit_events,
    audit_files,
)
from parquetry.serving.access.forgetting import Forgotten, forget_access
from parquetry.serving.access.principals import OPERATOR, Principal
from parquetry.serving.access.tokens import TokenStore

ADA = Principal("8d52bfe5e68f", "ada", "acme", None, frozenset({"search"}), None)
BOB = Principal("9c9067a51eed", "bob", None, None, frozenset({"search"}), None)


class Clock:
    def __init__(self):
        self.seconds = datetime(2031, 3, 1, 9, 30, tzinfo=UTC).timestamp()

    def __call__(self):
        return self.seconds


def asked(principal=ADA, **values):
    return AuditEvent("knowledge.retrieve", namespace="hr", queries=1, chunks=5, **values).by(principal)


def test_event_says_when_who_where_and_how_much(tmp_path):
    AuditLog(tmp_path, now=Clock()).write(asked(top_score=0.71234567, milliseconds=12.34567, text="who earns what"))
    (line,) = (tmp_path / FILE).read_text().splitlines()
    event = json.loads(line)
    assert tuple(event) == COLUMNS
    assert {name: value for name, value in event.items() if value is not None} == {
        "time": "2031-03-01T09:30:00.000Z",
        "event": "knowledge.retrieve",
        "token_id": "8d52bfe5e68f",
        "user_id": "ada",
        "org_id": "acme",
        "operator": False,
        "namespace": "hr",
        "queries": 1,
        "chunks": 5,
        "top_score": 0.712346,
        "milliseconds": 12.346,
        "suppressed": 0,
    }


def test_text_is_kept_when_asked_for_without_secrets_and_within_bounds(tmp_path, nothing_announced):
    token = "pqt_4cNHjx1SEGJaSUgMHf6ItwZIIBPsRu3HrH6cW20tuSGP3XUmPq"
    log = AuditLog(tmp_path, keep_text=True)
    log.write(asked(text=f"is {token} mine?\n\x1b[2J"))
    log.write(asked(text="x" * 1_000_000))
    first, second = (tmp_path / FILE).read_text().splitlines()
    assert json.loads(first)["text"] == "is pqt_*** mine?\n\x1b[2J"
    assert "\x1b" not in first
    assert len(second) < 3000


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files are those of Unix")
def test_files_are_readable_by_their_owner_only(tmp_path):
    log = AuditLog(tmp_path, most_bytes=1)
    for _ in range(3):
        log.write(asked())
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


WRITE = """
import sys
from pathlib import Path
from parquetry.serving.access.audit import AuditEvent, AuditLog
log = AuditLog(Path(sys.argv[1]), most_bytes=20_000)
for number in range(300):
    log.write(AuditEvent("knowledge.retrieve", target=f"{sys.argv[2]}-{number}"))
print(log.lost)
"""


def test_no_line_is_lost_or_torn_while_processes_write_and_files_are_put_aside(tmp_path, monkeypatch):
    programs = [
        subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path), str(name)], stdout=subprocess.PIPE, text=True)
        for name in range(3)
    ]
    assert [program.communicate()[0].strip() for program in programs] == ["0", "0", "0"]
    written = [json.loads(line)["target"] for file in audit_files(tmp_path) for line in file.read_text().splitlines()]
    assert len(audit_files(tmp_path)) > 3
    assert sorted(written) == sorted(f"{name}-{number}" for name in range(3) for number in range(300))
    for name in range(3):
        own = [int(each.partition("-")[2]) for each in written if each.startswith(f"{name}-")]
        assert own == sorted(own), "oldest first"


def test_space_has_a_bound(tmp_path):
    clock = Clock()
    log = AuditLog(tmp_path, now=clock, most_bytes=2000)
    for number in range(500):
        clock.seconds += 1
        log.write(asked(target=str(number)))
    sizes = [file.stat().st_size for file in audit_files(tmp_path)]
    assert len(sizes) <= KEPT_FILES + 1
    assert max(sizes) < 2500
    kept = [int(event["target"]) for event in audit_events(tmp_path)]
    assert kept == list(range(kept[0], 500)), "the newest stay"


def test_flood_of_refusals_pushes_nothing_out_and_is_counted(tmp_path):
    clock = Clock()
    log = AuditLog(tmp_path, now=clock)
    for _ in range(1000):
        log.write(AuditEvent("access.refused", address="10.0.0.7", status=401, reason="token-unknown"))
    log.write(asked())
    clock.seconds += 60
    log.write(AuditEvent("access.refused"))
    events = list(audit_events(tmp_path))
    assert [each["event"] for each in events] == ["access.refused"] * REFUSED_PER_MINUTE + [
        "knowledge.retrieve",
        "access.refused",
    ]
    assert [each["suppressed"] for each in events][-2:] == [1000 - REFUSED_PER_MINUTE, 0]


def test_threads_share_a_log(tmp_path):
    log = AuditLog(tmp_path)
    threads = [threading.Thread(target=lambda: [log.write(asked()) for _ in range(100)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(audit_events(tmp_path))) == 400


def test_failure_fails_no_request_and_is_reported_once(tmp_path, capsys):
    log = AuditLog(tmp_path / "missing")
    for _ in range(3):
        log.write(asked())
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("parquetry: audit events are not recorded: ")
    assert log.lost == 3


def test_line_that_a_full_disk_cut_off_hides_no_other(tmp_path):
    log = AuditLog(tmp_path)
    log.write(asked())
    with (tmp_path / FILE).open("a") as file:
        file.write('{"time": "2031-03-01T0\n[1]\nnull\n')
    log.write(asked(BOB))
    assert [each["user_id"] for each in audit_events(tmp_path)] == ["ada", "bob"]


def test_files_are_a_table_for_duckdb(tmp_path):
    clock = Clock()
    log = AuditLog(tmp_path, now=clock, most_bytes=1)
    created = AuditEvent("token.created", operator=True, target="8d52bfe5e68f")
    for event in (asked(OPERATOR), asked(top_score=0.5), created):
        log.write(event)
        # Two of the same millisecond have no order.
        clock.seconds += 1
    rows = duckdb.sql(
        f"SELECT event, user_id, operator, chunks, top_score FROM read_json('{tmp_path}/audit*.jsonl') ORDER BY time"
    ).fetchall()
    assert rows == [
        ("knowledge.retrieve", None, True, 5, None),
        ("knowledge.retrieve", "ada", False, 5, 0.5),
        ("token.created", None, True, None, None),
    ]


def test_events_and_tokens_of_a_forgotten_user_are_in_no_file(tmp_path):
    clock = Clock()
    log = AuditLog(tmp_path, now=clock, most_bytes=1500)
    with TokenStore(tmp_path) as store:
        store.create("of ada", user_id="ada")
        store.create("of bob", user_id="bob")
        for _ in range(10):
            clock.seconds += 1
            log.write(asked())
            log.write(asked(BOB))
        # Without a bound, the newest file holds an event of the user.
        AuditLog(tmp_path, now=clock).write(asked())
        assert forget_access(tmp_path, "ada") == Forgotten(1, 11)
        log.write(asked(BOB))
        assert [token.user_id for token in store.list()] == ["bob"]
    assert [each["user_id"] for each in audit_events(tmp_path)] == ["bob"] * 11
    assert all(b"ada" not in file.read_bytes() for file in tmp_path.iterdir())
    assert forget_access(tmp_path, "ada") == Forgotten(0, 0)


def test_forgetting_makes_no_state_where_there_is_none(tmp_path):
    assert forget_access(tmp_path / "service", "ada") == Forgotten(0, 0)
    assert list(tmp_path.iterdir()) == []
