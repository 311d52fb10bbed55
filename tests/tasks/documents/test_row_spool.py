"""The rows of a run come back in their order, from memory and from the file."""

import errno
import tempfile
from pathlib import Path

import pytest

from parquetry.tasks.documents import row_spool
from parquetry.tasks.documents.row_spool import RowSpool
from tests.records import row


@pytest.fixture
def spool(monkeypatch):
    monkeypatch.setattr(row_spool, "IN_MEMORY", 4)
    made = RowSpool()
    yield made
    made.close()


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 12, 13])
def test_rows_come_back_in_their_order_as_often_as_asked_for(spool, count):
    rows = [row(f"{number}.md") for number in range(count)]
    for start in range(0, count, 3):
        spool.extend(rows[start : start + 3])
    assert len(spool) == count
    assert list(spool) == rows
    assert list(spool) == rows


def test_rows_are_found_wherever_they_wait(spool):
    rows = [row(f"{number}.md") for number in range(6)]
    spool.extend(rows[:4])
    spool.extend(rows[4:])
    assert rows[0] in spool
    assert rows[5] in spool
    assert row("other.md") not in spool


def test_rows_are_in_memory_for_one_part_of_the_file_only(spool):
    for number in range(100):
        spool.extend([row(f"{number}.md")])
    assert len(spool._latest) < 4


def test_closed_spool_refuses_to_read(spool):
    spool.extend([row(f"{number}.md") for number in range(5)])
    spool.close()
    with pytest.raises(ValueError, match="closed"):
        list(spool)


def test_full_disk_is_named_by_its_folder(spool, monkeypatch):
    full = Path("/dev/full").open("r+b")  # noqa: SIM115 - closed by the spool
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
    with pytest.raises(OSError) as raised:
        spool.extend([row(f"{number}.md") for number in range(5)])
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, tempfile.gettempdir())
