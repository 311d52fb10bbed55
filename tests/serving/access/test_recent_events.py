"""The newest audit events, from the ends of their files."""

from parquetry.serving.access.audit import AuditEvent, AuditLog, audit_events
from parquetry.serving.access.recent_events import recent_events


def written(tmp_path, number, **options):
    clock = iter(range(1_900_000_000, 2_000_000_000))
    log = AuditLog(tmp_path, keep_text=True, now=lambda: next(clock), **options)
    for each in range(number):
        log.write(AuditEvent("knowledge.retrieve", chunks=each, text="ü" * (each % 700)))
    return log


def every(_):
    return True


def test_events_of_several_files_come_newest_first(tmp_path):
    written(tmp_path, 600, most_bytes=40_000)
    assert len(list(tmp_path.glob("audit*.jsonl"))) > 3
    found, more = recent_events(tmp_path, every, 10_000)
    assert found == list(audit_events(tmp_path))[::-1]
    assert len(found) == 600
    assert not more


def test_only_what_is_asked_for_is_read(tmp_path):
    written(tmp_path, 300)
    found, more = recent_events(tmp_path, every, 3)
    assert ([each["chunks"] for each in found], more) == ([299, 298, 297], True)
    found, more = recent_events(tmp_path, lambda event: event["chunks"] == 5, 3, most_read=10_000)
    assert (found, more) == ([], True)
    found, more = recent_events(tmp_path, lambda event: event["chunks"] == 5, 3)
    assert ([each["chunks"] for each in found], more) == ([5], False)


def test_line_that_was_cut_off_is_left_out(tmp_path):
    written(tmp_path, 2)
    with (tmp_path / "audit.jsonl").open("ab") as file:
        file.write(b'{"event": "knowl')
    assert [each["chunks"] for each in recent_events(tmp_path, every, 10)[0]] == [1, 0]


def test_folder_without_events_has_none(tmp_path):
    assert recent_events(tmp_path, every, 10) == ([], False)
