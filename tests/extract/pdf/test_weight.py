"""The measure of what pages of a PDF draw, wherever their objects are, and the objects that it does not parse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader
from pypdf.errors import PyPdfError
from pypdf.generic import IndirectObject

from parquetry.errors import BrokenDocument
from parquetry.extract.pdf.packed_objects import OneByOneReader
from parquetry.extract.pdf.reader import PdfExtractor
from parquetry.extract.pdf.weight import Weights
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.extract.hostile_pdf import form, pages, shown, stream

LINK = "<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] >>"
STAMP = "<< /Type /Annot /Subtype /Stamp /Rect [0 0 9 9] {} << /N 8 0 R >> >>"
BROKEN = "<< /Type /Annot /Rect [0 0 9 >"
CONTENT = shown(40)


def packed(annotations: Mapping[int, str], *, offsets: int = 1, kind: str = "/ObjStm") -> bytes:
    """A document of one page whose dictionaries, from number 10, are in object stream 9.

    Args:
        annotations: number -> dictionary of each annotation.
        offsets: factor of the offsets in the stream; any but 1 makes them wrong.
        kind: type of the stream.
    """
    inside = {
        10: "<< /Type /Catalog /Pages 11 0 R >>",
        11: "<< /Type /Pages /Kids [12 0 R] /Count 1 /MediaBox [0 0 600 850] >>",
        12: f"<< /Type /Page /Parent 11 0 R /Contents 7 0 R /Annots [{' '.join(f'{n} 0 R' for n in annotations)}] >>",
        **annotations,
    }
    body, header = "", ""
    for number, content in inside.items():
        header += f"{number} {offsets * len(body)} "
        body += f" {content}\n"
    stream_of_objects = stream(header + body, f"/Type {kind} /N {len(inside)} /First {len(header)}", packed=True)
    written = b"%PDF-1.7\n"
    rows: dict[int, tuple[int, int, int]] = {number: (2, 9, place) for place, number in enumerate(inside)}
    for number, content in {7: stream(CONTENT), 8: form(CONTENT), 9: stream_of_objects}.items():
        rows[number] = (1, len(written), 0)
        written += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    size = max(rows) + 1
    table = b"".join(
        bytes([state]) + where.to_bytes(4, "big") + bytes([place])
        for state, where, place in (rows.get(number, (0, 0, 0)) for number in range(size))
    )
    entries = f"/Type /XRef /Size {size} /W [1 4 1] /Root 10 0 R"
    start = len(written)
    return written + b"%d 0 obj\n%b\nendobj\nstartxref\n%d\n%%%%EOF\n" % (
        size,
        stream(table.decode("latin-1"), entries),
        start,
    )


def weight(content: bytes) -> int:
    """The bytes that the first page draws."""
    weights = Weights(OneByOneReader(content), (), len(content))
    before = weights._left
    assert weights.allows_next()
    return before - weights._left


def test_a_link_does_not_hide_what_its_page_draws():
    """A page with an annotation without appearance was counted as drawing nothing."""
    references = "5 0 R " * 40_000
    content, name = pages(f"[{references}]".encode(), page="/Annots [6 0 R]", more={5: stream(shown(20_000)), 6: LINK})
    with pytest.raises(BrokenDocument) as refused:
        PdfExtractor().extract(RawDocument(content, name), "application/pdf", ExtractionSettings(ocr=False))
    assert refused.value.reason == "too-large"


@pytest.mark.parametrize("name", ["/AP", "/#41P", "/A#50", "/#41#50"])
def test_an_appearance_counts_however_its_name_is_spelled(name: str):
    assert weight(packed({13: LINK})) == len(CONTENT)
    assert weight(packed({13: LINK, 14: STAMP.format(name)})) == 2 * len(CONTENT)


def test_an_annotation_without_appearance_is_not_parsed():
    assert weight(packed({13: LINK, 14: BROKEN})) == len(CONTENT)


def may_attach(content: bytes) -> bool:
    weights = Weights(OneByOneReader(content), (), len(content))
    assert weights.allows_next()
    return weights.may_attach


@pytest.mark.parametrize("kind", ["/FileAttachment", "/#46ileAttachment", "/FileAttac#68ment", "/File#41ttachment"])
def test_a_page_with_an_attached_file_is_told_from_one_with_links(kind: str):
    """PDFium keeps each annotation that it is asked for, 100 MB for the index of a manual."""
    assert not may_attach(packed({13: LINK}))
    assert may_attach(packed({13: LINK, 14: f"<< /Type /Annot /Subtype {kind} /Rect [0 0 9 9] >>"}))


@pytest.mark.parametrize(
    ("annotation", "attaches"),
    [
        (LINK, False),
        ("<< /Subtype /Link /A << /URI (a \\) >> endobj) >> /Contents <2f41> >>", False),
        ("<< /Subtype /Link /F << /Type /FileAttachment >> >>", True),
        ("<< /Subtype /#46ileAttachment >>", True),
        ("<< /Subtype /Link /Contents (a (b) c) >>", True),
        ("<< /Subtype /Link % >>\n >>", True),
        ("<< /Subtype /Link >", True),
    ],
)
def test_an_annotation_in_no_object_stream_is_a_link_only_if_its_end_is_certain(annotation: str, attaches: bool):
    content, _ = pages(stream(CONTENT), page="/Annots [6 0 R]", more={6: annotation})
    assert may_attach(content) == attaches


@pytest.mark.parametrize("look", ["<< /Type /Annot /AP << /N 7 0 R >> >>", "<< /A (/AP) /#41P << /N 7 0 R >> >>"])
def test_an_appearance_counts_where_it_follows_in_no_object_stream(look: str):
    content, _ = pages(stream(CONTENT), page="/Annots [5 0 R 6 0 R]", more={5: LINK, 6: look, 7: form(CONTENT)})
    assert weight(content) == 2 * len(CONTENT)


def test_an_object_at_another_place_than_the_table_says_is_left_to_pypdf():
    content, _ = pages(stream(CONTENT), page="/Annots [6 0 R]", more={6: LINK, 7: LINK})
    reader = OneByOneReader(content)
    reader.xref[0][6] = reader.xref[0][7]
    assert not reader.lacks(IndirectObject(6, 0, reader), "/AP")
    assert reader.get_object(6) == PdfReader(BytesIO(content), strict=False).get_object(6)


def test_an_annotation_that_is_a_reference_may_have_an_appearance():
    content = packed({13: LINK, 14: "8 0 R"})
    reader = OneByOneReader(content)
    annotations = reader.trailer["/Root"]["/Pages"]["/Kids"][0]["/Annots"]
    assert [reader.lacks(each, "/AP") for each in annotations] == [True, False]
    assert not reader.lacks(annotations[0].get_object(), "/AP")


def outcome(opened: Callable[[], PdfReader]) -> object:
    try:
        return sorted(opened().trailer["/Root"] or ())
    except (PyPdfError, AssertionError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("wrong", [{}, {"offsets": 0}, {"offsets": 1000}, {"kind": "/Other"}])
def test_an_object_stream_that_is_not_as_it_should_be_is_left_to_pypdf(wrong: dict[str, Any]):
    content = packed({13: LINK}, **wrong)
    assert outcome(lambda: OneByOneReader(content)) == outcome(lambda: PdfReader(BytesIO(content), strict=False))


_HEADERS = b"%PDF-1.7\n" + b"1 0 obj\n" * 40
_ENTRY = st.tuples(st.sampled_from([0, 1, 1, 2, 2]), st.sampled_from(range(9, len(_HEADERS), 8)), st.integers(0, 1))


@given(
    st.lists(st.lists(_ENTRY, min_size=2, max_size=6), min_size=2, max_size=3),
    st.sampled_from([(1, 2, 1), (1, 2, 1), (1, 4, 2), (1, 2, 0), (0, 2, 1), (2, 2, 1), (1, 2, 1, 1)]),
    st.integers(0, 2),
    st.sampled_from([0, 0, 0, -1, 2]),
    st.sampled_from([None, None, 3]),
)
def test_the_places_of_objects_are_those_that_pypdf_reads(
    sections: list[list[tuple[int, int, int]]], widths: tuple[int, ...], overlap: int, missing: int, unknown: int | None
):
    """Free objects, numbers that occur twice, other widths, unknown kinds, and fewer or more entries than there are."""
    entries = [entry for section in sections for entry in section]
    if unknown is not None:
        entries[1] = (unknown, 7, 0)
    data = b"".join(
        (number % 256**width if width else 0).to_bytes(width, "big")
        for entry in entries
        for number, width in zip((*entry, 0), widths, strict=False)
    )
    pairs: list[int] = []
    for section in sections:
        start = 0 if not pairs else max(0, pairs[-2] + pairs[-1] - overlap)
        pairs += [start, max(0, len(section) + missing)]
    text = data.decode("latin-1")
    written = f"/Type /XRef /Size 99 /Index [{' '.join(map(str, pairs))}] /W [{' '.join(map(str, widths))}]"
    content = _HEADERS + b"1 0 obj\n%b\nendobj\nstartxref\n%d\n%%%%EOF\n" % (stream(text, written), len(_HEADERS))
    with_pypdf, one_by_one = PdfReader(BytesIO(content)), OneByOneReader(content)
    assert one_by_one.xref == with_pypdf.xref
    assert one_by_one.xref_objStm == with_pypdf.xref_objStm
