"""Word documents and presentations in the binary formats of 1997 to 2003."""

from __future__ import annotations

import random

import pytest

from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument
from parquetry.extract import old_office
from parquetry.extract.old_office import OldOfficeExtractor
from parquetry.extract.readers import fingerprint
from parquetry.extract.registry import extract
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.files.doc_writer import ENCRYPTED, write_doc, write_ppt

SETTINGS = ExtractionSettings(ocr=False)
DOC = write_doc("The harbour has three quays, and each of them has cranes.\rThe crane \u20ac lifts.\r")
PPT = write_ppt([["Cranes", "They lift."], ["Quays", "They are long."]])


def read(content: bytes, name: str = "a.doc") -> Extraction:
    return extract(RawDocument(content, name), SETTINGS)


def refusal(content: bytes, name: str) -> str | None:
    """Return the refusal of a file, in one line; None if it is read."""
    try:
        read(content, name)
    except DocumentError as error:
        return str(error) if "\n" not in str(error) else pytest.fail(str(error))
    return None


def test_paragraphs_of_a_document():
    extraction = read(DOC)
    assert extraction.text.endswith("quays, and each of them has cranes.\n\nThe crane € lifts.")
    assert (extraction.media_type, extraction.extractor) == ("application/msword", "old-office/1")


def test_slides_are_places_and_their_titles_headings():
    extraction = read(PPT, "a.ppt")
    assert extraction.text == "# Cranes\n\nThey lift.\n\n# Quays\n\nThey are long."
    assert [(part.kind, part.number, part.start) for part in extraction.parts] == [("slide", 1, 0), ("slide", 2, 22)]
    assert [heading.title for heading in extraction.headings] == ["Cranes", "Quays"]
    assert (extraction.title, extraction.metadata) == ("Cranes", {"slides": 2})


def test_elements_of_the_reader_keep_their_form(monkeypatch: pytest.MonkeyPatch):
    def text(told: str) -> dict[str, object]:
        return {"type": "paragraph", "content": [{"type": "text", "text": told}]}

    elements = [
        {"type": "heading", "level": 2, "content": [{"type": "text", "text": "Cranes"}]},
        {"type": "table", "rows": [
            {"cells": [{"content": [text("Name")]}, {"content": [text("n")]}]},
            {"cells": [{"content": [text("both"), text("sides")], "col_span": 2}]},
        ]},
        {"type": "list", "ordered": True, "items": [
            {"content": [text("one")], "nested": {"items": [{"content": [text("in")]}]}},
            {"content": [text("")]}, {"content": [text("two")]},
        ]},
        {"type": "text_box", "content": [text("a box"), text("of two")]},
        {"type": "paragraph", "content": [{"text": "x"}, {"type": "line_break"}, {"text": "y"}]},
    ]  # fmt: skip
    told = {"title": "Microsoft Word - a.doc", "author": "Ada", "keywords": ["a", "b"], "text_truncated": True}
    section = {"elements": elements, "hidden": True, "speaker_notes": "Speak slowly."}
    monkeypatch.setattr(old_office, "_read", lambda content, kind: {"metadata": told, "sections": [section]})
    extraction = OldOfficeExtractor().extract(RawDocument(b"", "a.ppt"), "application/vnd.ms-powerpoint", SETTINGS)
    assert extraction.text == (
        "## Cranes\n\n| Name | n |\n| --- | --- |\n| both sides |  |\n\n1. one\n  - in\n2. two\n\na box\n\n"
        "of two\n\nx\ny\n\n"
        "Notes: Speak slowly."
    )
    assert (extraction.title, extraction.metadata) == (None, {"author": "Ada", "keywords": "a, b", "slides": 1})
    assert extraction.warnings == ("the reader has cut its text", "slide 1 is hidden; its text is indexed")


def test_a_document_with_a_password_is_named_as_such():
    with pytest.raises(BrokenDocument, match=r"^encrypted: the document is protected with a password$"):
        read(write_doc("x\r", flags=ENCRYPTED))


@pytest.mark.parametrize(("content", "name"), [(DOC, "a.doc"), (PPT, "a.ppt")])
def test_files_that_are_cut_short_or_changed_are_read_or_refused_in_one_line(content: bytes, name: str):
    chance = random.Random(7)
    refused = 0
    for number in range(150):
        broken = bytearray(content[: chance.randrange(len(content))] if number % 3 == 0 else content)
        for _ in range(number % 3 * 5):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        refused += refusal(bytes(broken), name) is not None
    assert refused > 20


def test_what_is_no_document_is_damaged():
    with pytest.raises(BrokenDocument, match=r"^damaged: it cannot be read as \.doc: "):
        read(DOC[:600] + bytes(9000))


def test_without_the_extra_a_document_is_skipped_with_what_to_do(monkeypatch: pytest.MonkeyPatch):
    before = fingerprint("application/msword", SETTINGS)
    monkeypatch.setattr("parquetry.extract.old_office.available", lambda: False)
    with pytest.raises(SkippedDocument, match=r"pip install 'parquetry\[office\]'; or save it as \.docx"):
        read(DOC)
    assert fingerprint("application/msword", SETTINGS) != before
