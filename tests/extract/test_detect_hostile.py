"""Detection takes time linear in a bounded head of a document, also for hostile content."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile

import pytest

from parquetry.extract.detect import detect, image_type

pytestmark = pytest.mark.slow


def _directory(parts: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number in range(parts):
            archive.writestr(str(number), b"")
    return stream.getvalue()


HEADS = {
    "empty comments": b"<!---->" * 40,
    "many empty comments": b"<!---->" * 4000,
    "comments that are not closed": b"<!--" * 4000,
    "instructions": b"<??>" * 4000,
    "instructions that are not closed": b"<?" * 8000,
    "comments among white space": b" <!-- -->\n" * 2000 + b"<",
    "closed and not closed": b"<!-->" * 4000,
    "doctype": b"<!doctype" + b" " * 16_000,
    "element": b"<a" + b" " * 16_000,
    "attributes without a value": b"<a " + b"b " * 8000 + b">",
    "long name": b"<" + b"a" * 16_000,
    "script": b"#!" + b" " * 16_000,
    "path of a script": b"#!" + b"/a" * 8000,
    "options of a script": b"#!env " + b"-a " * 5000,
    "name of a script": b"#!/a/" + b"a1." * 5000,
    "blank lines": b"\n" * 16_000,
    "tabs": b"\t" * 16_000 + b"x",
    "header": b"a" * 16_000 + b":",
    "folded header": b"from: a\n" + b" \t" * 8000,
    "nested lists": b"[" * 4_000_000,
    "nested objects": b'{"a":' * 800_000,
    "digits": b"[" + b"1" * 4_000_000 + b"]",
    "fraction": b"[1." + b"1" * 4_000_000 + b"]",
    "backslashes": b'["' + b"\\\\" * 2_000_000,
    "members of an archive": _directory(20_000),
    "directories of an archive": b"PK\x03\x04" + b"PK\x05\x06" * 16_000,
    "streams of an office file": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "Workboo".encode("utf-16-le") * 300_000,
    "wide characters": "<!---->".encode("utf-16-le") * 1000,
}
NAMES = ("x", "x.txt", "x.h", "x.html", "x.xml", "x.json", "x.xlsx", "x.eml")
PROGRAM = """
import json, sys, time
from parquetry.extract.detect import detect, image_type
content = sys.stdin.buffer.read()
started = time.process_time()
for name in json.loads(sys.argv[1]):
    detect(content, name), image_type(content, name)
print(time.process_time() - started)
"""
ENDLESS = 60
"""CPU seconds: a hundred times the time for all names of one head"""


@pytest.mark.parametrize("content", HEADS.values(), ids=HEADS)
def test_head_of_a_stranger_takes_no_time(content):
    program = [sys.executable, "-c", PROGRAM, json.dumps(NAMES)]
    done = subprocess.run(program, input=content, capture_output=True, timeout=2 * ENDLESS, check=True)
    assert float(done.stdout) < ENDLESS


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (b"<!-- a --><?b?>\n<!DOCTYPE html>", "x", "text/html"),
        (b"<!---->" * 40 + b"<html>", "x", "text/html"),
        (b"<!--><html>", "x", "text/plain"),
        (b"<!-- a --> b --><html>", "x", "text/plain"),
        (b"<?a?><!-- b --><c/>", "x", "application/xml"),
        (b"\n\nclass A {\n", "x.h", "text/x-c++"),
        (b"a\n\n  public:\n", "x.h", "text/x-c++"),
        (b"int a;\n", "x.h", "text/x-c"),
        (b"#!/usr/bin/env -S A=1 python3.12 -u\n", "x", "text/x-python"),
        (b"#!/opt/node18\n", "x", "text/x-javascript"),
        (b"#!/opt/tool.exe\n", "x", "text/plain"),
    ],
)
def test_what_comes_before_the_root_is_passed_over(content, name, kind):
    assert detect(content, name) == kind


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", "x", "image/png"),
        (b"\x89PNG\r\n\x1a\n%PDF-1.4 1 0 obj", "x", None),
        (b"PK\x03\x04", "x.png", None),
        (b"text", "x.png", None),
        (b"<svg/>", "x.svg", None),
    ],
)
def test_image_is_told_by_its_first_bytes(content, name, kind):
    assert image_type(content, name) == kind
