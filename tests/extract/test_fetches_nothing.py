"""Extraction fetches nothing that a document refers to: no request is sent, and no local file gets into the text."""

from __future__ import annotations

import io
import json
import socket
import threading
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from parquetry.errors import DocumentError
from parquetry.extract.registry import extract
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.extract.docx.test_docx import docx
from tests.extract.odf.test_odt import odf
from tests.extract.test_epub import epub

TOKEN = "zanzibar"
HTML = """<html><head><base href="{url}"><link rel="stylesheet" href="{url}a.css"><script src="{url}a.js"></script>
<meta http-equiv="refresh" content="0; url={url}"></head><body><p>planted words of a page, and some more of them</p>
<img src="{url}a.png"><img src="file://{file}"><iframe src="{url}"></iframe><iframe src="file://{file}"></iframe>
<object data="{url}"></object><embed src="{url}"><video src="{url}"></video>
<svg><image href="{url}"/><use href="{url}#a"/></svg><link rel="import" href="file://{file}"></body></html>"""
XML = {
    "entity": '<!DOCTYPE a [<!ENTITY e SYSTEM "{file}">]><a>planted &e;</a>',
    "url": '<!DOCTYPE a [<!ENTITY e SYSTEM "{url}">]><a>planted &e;</a>',
    "parameter": '<!DOCTYPE a [<!ENTITY % p SYSTEM "{url}a.dtd"> %p;]><a>planted</a>',
    "dtd": '<!DOCTYPE a SYSTEM "{url}a.dtd"><a>planted</a>',
    "include": '<a xmlns:x="http://www.w3.org/2001/XInclude">planted<x:include href="{file}" parse="text"/></a>',
    "stylesheet": '<?xml-stylesheet type="text/xsl" href="{url}a.xsl"?><a>planted</a>',
    "schema": '<a xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:noNamespaceSchemaLocation="{url}">planted</a>',
}
MARKDOWN = "---\ntitle: planted\n---\n# planted\n\n![a]({url}a.png)\n\n![a](file://{file})\n\n<img src='{url}'>\n"
RST = (
    "planted\n=======\n\n.. include:: {file}\n\n.. raw:: html\n   :url: {url}\n\n.. raw:: html\n   :file: {file}\n\n"
    ".. csv-table::\n   :url: {url}\n\n.. image:: {url}a.png\n\n.. figure:: file://{file}\n"
)
MAIL = (
    "From: a@b.c\nSubject: planted\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\n"
    "Content-Type: text/html\n\n{html}\n--x\nContent-Type: message/external-body; access-type=URL; "
    'URL="{url}"\n\nContent-Type: text/plain\n\n--x\nContent-Type: message/external-body; access-type=local-file; '
    'name="{file}"\n\nContent-Type: text/plain\n\n--x--\n'
)
_PICTURE = (
    '<w:p><w:r><w:t>planted</w:t></w:r></w:p><w:p><w:r><w:drawing><a:blip xmlns:a="http://schemas.openxmlformats.org/'
    'drawingml/2006/main" r:link="e1" r:embed="e2"/></w:drawing></w:r></w:p>'
)
_EXTERNAL = (
    '<Relationship Id="e1" TargetMode="External" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships/image" Target="{url}a.png"/><Relationship Id="e2" TargetMode="External" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" Target="file://{file}"/>'
    '<Relationship Id="e3" TargetMode="External" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships/attachedTemplate" Target="{url}a.dotm"/></Relationships>'
)


def word(url: str, file: Path) -> bytes:
    """A Word document with pictures and a template at external locations."""
    source, target = zipfile.ZipFile(io.BytesIO(docx(_PICTURE))), io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            content = source.read(name).decode()
            if name == "word/_rels/document.xml.rels":
                content = content.replace("</Relationships>", _EXTERNAL.format(url=url, file=file))
            archive.writestr(name, content)
    return target.getvalue()


def documents(url: str, file: Path) -> dict[str, bytes]:
    """Name -> a document of each format that refers to a URL and a file."""
    html = HTML.format(url=url, file=file)
    notebook = {
        "nbformat": 4,
        "metadata": {},
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": MARKDOWN.format(url=url, file=file)},
            {"cell_type": "code", "metadata": {}, "source": f"open({str(file)!r})", "execution_count": 1,
             "outputs": [{"output_type": "display_data", "metadata": {}, "data": {"text/html": html}}]},
        ],
    }  # fmt: skip
    texts = {
        "a.html": html,
        "a.md": MARKDOWN.format(url=url, file=file),
        "a.rst": RST.format(url=url, file=file),
        "a.eml": MAIL.format(url=url, file=file, html=html),
        "a.ipynb": json.dumps(notebook),
        "a.yaml": f"a: !include {file}\nb: !!python/object/apply:os.system ['curl {url}']\n",
        **{f"{kind}.xml": text.format(url=url, file=file) for kind, text in XML.items()},
        "a.svg": f'<svg xmlns="http://www.w3.org/2000/svg"><text>planted</text><image href="{url}"/></svg>',
    }
    picture = f'<draw:image xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="{url}a.png"/>'
    return {
        **{name: text.encode() for name, text in texts.items()},
        "a.docx": word(url, file),
        "a.odt": odf(f"<text:p>planted</text:p><text:p><draw:frame>{picture}</draw:frame></text:p>"),
        "a.epub": epub({"a.xhtml": f'<p>planted</p><img src="{url}"/><img src="file://{file}"/>'}, ["a.xhtml"]),
    }


@pytest.fixture
def listener():
    """Serve a URL that must get no connection; close every connection and fail the test."""
    knocks = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    server.accept()[0].close()
                    knocks.append(1)

        door = threading.Thread(target=hang_up)
        door.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        server.shutdown(socket.SHUT_RDWR)
        door.join()
    assert knocks == []


def test_no_document_of_any_kind_makes_a_request_or_reads_a_file(listener, tmp_path):
    file = tmp_path / "secret.txt"
    file.write_text(f"{TOKEN}\n", "utf-8")
    read = set()
    for name, content in documents(listener, file).items():
        try:
            found = extract(RawDocument(content, name), ExtractionSettings())
        except DocumentError:
            continue
        assert TOKEN not in found.text, name
        assert TOKEN not in str((found.title, found.metadata, found.parts)), name
        read.add(name)
    # Refused documents prove nothing.
    assert {"a.html", "a.md", "a.rst", "a.eml", "a.ipynb", "a.docx", "a.odt", "a.epub", "include.xml"} <= read
