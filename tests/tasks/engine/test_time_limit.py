"""A small file gets less time than a large one; scans and mails, which may hold images, get the full time."""

import time

import pytest

from parquetry.errors import BrokenDocument
from parquetry.model import RawDocument
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.sections import ExtractionSettings
from parquetry.tasks.engine.time_limit import TimeLimit, time_limit, time_limit_of
from parquetry.tasks.engine.workers import WorkerPool


@pytest.mark.parametrize(
    ("size", "timeout", "seconds"),
    [(0, 120, 20), (500_000, 120, 40), (2_500_000, 120, 120), (10**8, 120, 120), (0, 10, 10), (500_000, 600, 200)],
)
def test_time_grows_with_the_size_up_to_the_setting(size, timeout, seconds):
    assert time_limit(size, ExtractionSettings(timeout_seconds=timeout)).seconds == seconds


@pytest.mark.parametrize(
    ("content", "name", "is_short"),
    [
        (b"text", "a.md", True),
        (b"<p>x</p>", "a.html", True),
        (b"PK\x03\x04", "a.docx", True),
        (b"%PDF-1.7", "a", False),
        (b"x", "a.pdf", False),
        (b"\x89PNG\r\n\x1a\n", "a.txt", False),
        (b"II*\0", "a", False),
        (b"x", "a.tiff", False),
        (b"\0\0\0\x18ftypheic", "a", False),
        (b"x", "a.heic", False),
        (b"From: a\nMIME-Version: 1.0\n\n", "1712.mail", False),
        (b"x", "a.eml", False),
    ],
)
def test_what_may_hold_pictures_is_given_all_the_time(content, name, is_short, monkeypatch):
    monkeypatch.setattr("parquetry.tasks.engine.time_limit.ocr_available", lambda: True)
    document = RawDocument(content, name)
    assert (time_limit_of(document, ExtractionSettings()).seconds < 120) is is_short
    assert time_limit_of(document, ExtractionSettings(ocr=False)).seconds < 120


def test_the_message_says_which_limit_it_was():
    pool = WorkerPool(ExtractionSettings(workers=1), ChunkingSettings(), None)
    try:
        with pytest.raises(BrokenDocument) as raised:
            pool.result(pool._schedule(time.sleep, 60, limit=TimeLimit(0.6, 12_000)))
    finally:
        pool.close()
    detail = "took longer than 1 s (the share of extraction.timeout_seconds for 12.0 kB)"
    assert (raised.value.reason, raised.value.detail) == ("timeout", detail)


def test_everything_that_is_read_has_the_limit_of_its_size():
    settings = ExtractionSettings(workers=1)
    pool = WorkerPool(settings, ChunkingSettings(), None)
    document = RawDocument(b"x" * 10_000, "a.md")
    try:
        given = [pool.prepare(document), pool.sessions(document), pool.chunk("x" * 10_000, (), ())]
        limits = [pool._limits[future] for future in given]
    finally:
        pool.close()
    assert limits == [time_limit(10_000, settings)] * 3
    assert limits[0].seconds < settings.timeout_seconds
