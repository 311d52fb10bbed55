"""Compressed files: one document each."""

from __future__ import annotations

import bz2
import gzip
import lzma
from base64 import encodebytes
from typing import Any

import pytest

from parquetry.decompress import RATIO_FREE_BYTES
from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract.media_types import name_inside
from parquetry.extract.registry import extract
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings
from parquetry.unpacking import zstd

PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress}
PAGE = b"<!doctype html><title>Oak</title><h1>Rules</h1><p>Count the boards.</p>"
TABLE = b"name;sum\nOak;3\nElm;4\n"
LOG = b"10:00 \x1b[31mERROR\x1b[0m no boards\n"


def read(content: bytes, filename: str, **settings: Any) -> Extraction:
    return extract(RawDocument(content, filename), ExtractionSettings(**settings))


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize(("name", "content"), [("a.html", PAGE), ("a.csv", TABLE), ("a.log", LOG), ("a.log.1", LOG)])
def test_compressed_document_is_read_as_if_it_were_not(name: str, content: bytes, ending: str) -> None:
    assert read(PACKED[ending](content), name + ending) == read(content, name)


@pytest.mark.parametrize("name", ["a.html", "a.html.xz", "oak", ".gz"])
def test_content_tells_how_it_is_packed_whatever_its_name(name: str) -> None:
    assert read(gzip.compress(PAGE), name).text == "# Rules\n\nCount the boards."


def test_several_streams_are_one_document() -> None:
    assert read(gzip.compress(b"first\n") + gzip.compress(b"second\n"), "a.txt.gz").text == "first\nsecond"


def test_name_inside_is_the_name_without_its_ending() -> None:
    names = ["a.md.gz", "A.MD.GZ", "map.svgz", "box.tgz", "a.txt", ".gz", "gz", "a.", "folder.gz/a"]
    inside = ["a.md", "A.MD", "map.svg", "box.tar", "a.txt", ".gz", "gz", "a.", "folder.gz/a"]
    assert [name_inside(name) for name in names] == inside


@pytest.mark.parametrize("ending", PACKED)
def test_content_that_ends_too_early_or_too_late_is_damaged(ending: str) -> None:
    packed = PACKED[ending](PAGE * 99)
    # What follows a stream is another one.
    for damaged in (packed[:12], packed[:-1], packed + b"x"):
        with pytest.raises(BrokenDocument) as caught:
            read(damaged, f"a.html{ending}")
        assert caught.value.reason == "damaged"


@pytest.mark.parametrize("ending", PACKED)
def test_document_of_another_kind_is_damaged(ending: str) -> None:
    with pytest.raises(BrokenDocument) as caught:
        read(b"not packed at all", f"a.txt{ending}")
    assert caught.value.reason == "damaged"


def test_document_that_unpacks_to_too_much_is_refused() -> None:
    packed = gzip.compress(b"a" * 5_000_000)
    with pytest.raises(BrokenDocument) as caught:
        read(packed, "a.txt.gz", max_unpacked_bytes=4_999_999)
    assert str(caught.value) == "too-large: unpacks to more than 4999999 bytes (max_unpacked_bytes)"
    assert len(read(packed, "a.txt.gz", max_unpacked_bytes=5_000_000).text) == 5_000_000


def test_document_that_unpacks_to_many_times_its_size_is_refused() -> None:
    packed = gzip.compress(bytes(RATIO_FREE_BYTES + 1_000_000))
    with pytest.raises(BrokenDocument) as caught:
        read(packed, "a.txt.gz")
    assert str(caught.value) == "too-large: unpacks to more than 300 times its size"


def test_document_packed_twice_is_refused_also_with_a_mail_between() -> None:
    twice = gzip.compress(gzip.compress(PAGE))
    with pytest.raises(BrokenDocument) as caught:
        read(twice, "a.html.gz.gz")
    assert caught.value.reason == "nested-too-deep"
    mail = b"From: a@b.c\nTo: d@e.f\nSubject: S\nMIME-Version: 1.0\nContent-Type: application/gzip; name=a.html.gz\n"
    mail += b"Content-Disposition: attachment; filename=a.html.gz\nContent-Transfer-Encoding: base64\n\n"
    mail += encodebytes(gzip.compress(PAGE))
    assert "Count the boards." in read(mail, "a.eml").text
    inside = read(gzip.compress(mail), "a.eml.gz")
    assert "Count the boards." not in inside.text
    assert [warning for warning in inside.warnings if "nested-too-deep" in warning]
    assert read(gzip.compress(PAGE), "a.html.gz").text, "the limit stays after a refusal"


def test_failure_is_that_of_the_document_inside() -> None:
    with pytest.raises(SkippedDocument) as caught:
        read(gzip.compress(b"<!doctype html><script>1</script>"), "a.html.gz")
    assert (caught.value.reason, caught.value.media_type) == ("no-text", "text/html")
    with pytest.raises(SkippedDocument) as caught:
        read(gzip.compress(b"\x7fELF" + bytes(60)), "a.gz")
    assert (caught.value.reason, caught.value.media_type) == ("unsupported-type", "application/x-elf")
