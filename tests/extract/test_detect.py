"""Media types: content first, name second; a damaged file keeps the type that its name implies."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.extract import media_types as kinds
from parquetry.extract.detect import detect
from tests.files.pdf_writer import line, write_pdf

PDF = write_pdf([line(72, 700, "x")])
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
NOISE = bytes((i * 197 + i // 7 * 31) % 256 for i in range(4000))
LETTER = (
    "From: a@example.org\r\nTo: b@example.org\r\nSubject: Cranes\r\nDate: Thu, 29 Feb 2024 08:15:30 +0100\r\n\r\nHi\r\n"
)


def archive(*members: str, **parts: str) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(zipfile.ZipInfo(name), text)
        for name in members:
            file.writestr(name, "x")
    return out.getvalue()


def office(content_type: str) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("[Content_Types].xml", f'<Override ContentType="application/{content_type}+xml"/>')
        file.writestr("part.xml", "<x/>")
    return out.getvalue()


def ole(*streams: str) -> bytes:
    return OLE + b"".join(stream.encode("utf-16-le").ljust(128, b"\0") for stream in streams)


WORD = "vnd.openxmlformats-officedocument.wordprocessingml.document.main"
SHEET = "vnd.openxmlformats-officedocument.spreadsheetml.sheet.main"
SLIDES = "vnd.openxmlformats-officedocument.presentationml.presentation.main"


@pytest.mark.parametrize(
    ("content", "filename", "expected"),
    [
        pytest.param(PDF, "a.txt", kinds.PDF, id="pdf under another name"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + PDF, "a.pdf", kinds.PDF, id="pdf after junk"),
        pytest.param(b"\n" * 900 + PDF, "unnamed", kinds.PDF, id="pdf after junk without a name"),
        pytest.param(b"MARK = '%PDF-1.7 1 0 obj'\n", "a.py", "text/x-python", id="program that mentions the mark"),
        pytest.param(b"<!doctype html><p>gone", "a.pdf", kinds.HTML, id="error page in place of a pdf"),
        pytest.param(NOISE, "a.pdf", kinds.PDF, id="garbage that should be a pdf"),
        pytest.param(b"not a pdf at all", "a.pdf", kinds.PDF, id="text that should be a pdf"),
        pytest.param(office(WORD), "a.bin", kinds.DOCX, id="docx"),
        pytest.param(office("vnd.ms-word.document.macroEnabled.main"), "a.docm", kinds.DOCX, id="docm"),
        pytest.param(office("vnd.ms-word.template.macroEnabledTemplate.main"), "a.dotm", kinds.DOCX, id="dotm"),
        pytest.param(office(SHEET), "a.zip", kinds.XLSX, id="xlsx"),
        pytest.param(office(SLIDES), "a.docx", kinds.PPTX, id="pptx under another name"),
        pytest.param(office("vnd.ms-excel.sheet.binary.macroEnabled.main"), "a.xlsb", kinds.XLSB, id="xlsb"),
        pytest.param(archive(mimetype=kinds.ODT), "a", kinds.ODT, id="odt"),
        pytest.param(archive(mimetype=kinds.ODS + "-template"), "a", kinds.ODS, id="ods template"),
        pytest.param(archive(mimetype="application/epub+zip"), "a", kinds.EPUB, id="epub"),
        pytest.param(archive("META-INF/container.xml"), "a.epub", kinds.EPUB, id="epub without its first part"),
        pytest.param(archive("a.txt", "b.txt"), "a.zip", kinds.ZIP, id="zip"),
        pytest.param(archive("a.txt"), "a.txt", kinds.ZIP, id="zip under another name"),
        pytest.param(office(WORD)[:60], "a.docx", kinds.DOCX, id="docx cut short"),
        pytest.param(archive("unrelated.xml"), "a.pptx", kinds.PPTX, id="zip that should be a pptx"),
        pytest.param(ole("WordDocument"), "a", kinds.DOC, id="doc"),
        pytest.param(ole("Workbook"), "a.doc", kinds.XLS, id="xls under another name"),
        pytest.param(ole("PowerPoint Document"), "a.ppt", kinds.PPT, id="ppt"),
        pytest.param(ole("__properties_version1.0"), "a.msg", kinds.MSG, id="msg"),
        pytest.param(ole("WordDocument", "Workbook"), "a.doc", kinds.DOC, id="doc with a table from xls"),
        pytest.param(ole("WordDocument", "Workbook"), "a.xls", kinds.XLS, id="xls with a text from doc"),
        pytest.param(ole("EncryptedPackage"), "a.xlsx", kinds.XLSX, id="encrypted xlsx"),
        pytest.param(ole("SomethingElse"), "a.db", kinds.OLE, id="other ole"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + NOISE, "a.jpg", kinds.PNG, id="png under another name"),
        pytest.param(b"MM\x00*\x00\x00\x00\x08", "a.jpg", kinds.TIFF, id="tiff"),
        pytest.param(b"II+\x00\x08\x00\x00\x00", "a", kinds.TIFF, id="tiff over 4 GB"),
        pytest.param(b"RIFF\x00\x00\x00\x00WEBPVP8 ", "a", kinds.WEBP, id="webp"),
        pytest.param(b"RIFF\x00\x00\x00\x00WAVEfmt ", "a", "audio/wav", id="wav"),
        pytest.param(b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", "a.jpg", "image/heic", id="heic"),
        pytest.param(b"\x00\x00\x00\x18ftypisom\x00\x00\x00\x00", "a", "video/mp4", id="mp4"),
        pytest.param(b"\x7fELF\x02\x01\x01" + bytes(9), "a", "application/x-elf", id="program"),
        pytest.param(b"{\\rtf1 hello}", "a.doc", kinds.RTF, id="rtf under another name"),
        pytest.param(NOISE, "a.txt", kinds.OCTETS, id="binary under a text name"),
        pytest.param(NOISE, "a", kinds.OCTETS, id="unknown binary"),
        pytest.param(NOISE, "a.json", kinds.JSON, id="garbage that should be json"),
        pytest.param(b"\x47\x40\x00\x10" * 400, "a.ts", "video/mp2t", id="video, not typescript"),
        pytest.param(b"name\tcount\nbolt\t4\n", "a.xls", kinds.TSV, id="export that calls itself excel"),
    ],
)  # fmt: skip
def test_binary_formats(content: bytes, filename: str, expected: str):
    assert detect(content, filename) == expected


@pytest.mark.parametrize(
    ("content", "filename", "expected"),
    [
        ("\n<!-- x --><!DOCTYPE HTML>\n<p>", "page", kinds.HTML),
        ('<?xml version="1.0"?><html xmlns="x">', "page.xml", kinds.HTML),
        ("<html><body>", "page.txt", kinds.HTML),
        ("<html><body>", "page.php", kinds.SOURCE),
        ("<p align=center>\n# Title", "README.md", kinds.MARKDOWN),
        ('<?xml version="1.0"?><rss></rss>', "feed", kinds.XML),
        ('<?xml version="1.0"?><rss></rss>', "feed.txt", kinds.XML),
        ("<?xml one?>\n<?xml two?>\n<a>", "snippets.txt", kinds.PLAIN),
        ('<svg xmlns="x"></svg>', "drawing", kinds.XML),
        ("<3 this is no markup", "note", kinds.PLAIN),
        (LETTER, "letter.txt", kinds.EMAIL),
        ("From: me\nTo: you\n\nno letter yet", "note.txt", kinds.PLAIN),
        ("Title: x\nAuthor: y\nDate: z\n\ntext", "post.md", kinds.MARKDOWN),
        ('{"a": [1, 2]}', "data", kinds.JSON),
        ("[1] Knuth, D.: The Art", "notes.txt", kinds.PLAIN),
        ('{"a": 1}\n{"a": 2}\n', "data.json", kinds.JSON_LINES),
        ('{"a": 1}\n', "data.jsonl", kinds.JSON_LINES),
        ('{"a": 1}\n{"a": 2}\n', "data", kinds.JSON_LINES),
        ('{"a": \n1', "data.json", kinds.JSON),
        (json.dumps({"cells": [], "nbformat": 4}), "nb", kinds.NOTEBOOK),
        ("[" * 100_000, "deep.txt", kinds.PLAIN),
        ("#!/usr/bin/env python3\nprint()", "tool", "text/x-python"),
        ("#!/usr/bin/env -S node --x\n", "tool", "text/x-javascript"),
        ("#!/bin/bash\n", "tool", "text/x-sh"),
        ("#!/usr/bin/perl -w\n", "tool", kinds.SOURCE),
        ("#!/bin/sh\n", "README.md", kinds.MARKDOWN),
        ("a,b\n1,2\n", "a.csv", kinds.CSV),
        ("a,b\n1,2\n", "a.txt", kinds.PLAIN),
        ("a,b\n1,2\n", "a.unheard-of", kinds.PLAIN),
        ("int x;", "a.H", "text/x-c"),
        ("namespace a {\nclass B {};\n}", "a.h", "text/x-c++"),
        ("all:\n\techo", "Makefile", kinds.SOURCE),
        ("FROM scratch", "Dockerfile", kinds.SOURCE),
        ("x", ".bashrc", "text/x-sh"),
        ("x", ".hidden", kinds.PLAIN),
        ("x", "Report.Final.RST", kinds.RST),
    ],
)
def test_kinds_of_text(content: str, filename: str, expected: str):
    assert detect(content.encode(), filename) == expected


@pytest.mark.parametrize(
    "encoding",
    ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "cp1252", "iso8859-5"],
)
def test_text_in_any_encoding_is_text(encoding: str):
    text = "Грузовик № 5" if encoding == "iso8859-5" else "Größe und Maß"
    assert detect((text + "\nline two\n").encode(encoding), "a") == kinds.PLAIN


@pytest.mark.parametrize("text", ["鉄道の時刻表\n次の列車は九時です\n", "駅 まで 歩く"])
@pytest.mark.parametrize("encoding", ["shift_jis", "euc_jp", "utf-16-le", "utf-16-be", "gb18030"])
def test_text_of_many_bytes_per_character_is_text(text: str, encoding: str):
    assert detect(text.encode(encoding) * 50, "a.txt") == kinds.PLAIN


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_markup_in_wide_encodings_is_recognised(encoding: str):
    assert detect("<!DOCTYPE html><p>x</p>".encode(encoding), "a.txt") == kinds.HTML
    assert detect('<?xml version="1.0"?><a>x</a>'.encode(encoding), "a") == kinds.XML


def test_a_character_cut_at_the_end_of_the_window_does_not_make_a_text_binary():
    for shift in range(1, 5):
        assert detect(b"x" * shift + "𝄞".encode() * 6000, "a") == kinds.PLAIN
        assert detect((" " * shift + "𝄞" * 9000).encode("utf-16-le"), "a") == kinds.PLAIN


def test_binary_data_after_a_text_header_is_binary():
    assert detect(b"header of a scientific file\n" * 700 + NOISE * 10, "a.dat") == kinds.OCTETS


def test_every_extension_is_in_lower_case_and_claimed_once():
    assert all(extension == extension.lower() for extension in kinds.BY_EXTENSION)
    assert not {t for t in kinds.BY_EXTENSION.values() if "/" not in t or " " in t}


@given(st.binary(max_size=300), st.sampled_from(["a", "a.pdf", "a.docx", "a.txt", "a.json", "a.xls", "a.ts", ".", ""]))
def test_any_bytes_under_any_name_have_a_type(content: bytes, filename: str):
    for prefix in (b"", b"PK\x03\x04", OLE[:8], b"\xff\xfe", b"{", b"<?xml "):
        assert "/" in detect(prefix + content, filename)
