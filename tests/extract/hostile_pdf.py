"""PDFs and images that cost a reader more than their size: name -> function of a size in bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from tests.extract.hostile_data import File, Hostile, times

_FONTS = "/Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
_FONT = f"/Resources << {_FONTS} >>"


def pdf(objects: Mapping[int, str | bytes], name: str = "a.pdf") -> File:
    """A document of numbered objects; object 1 is the catalog."""
    pieces = [b"%PDF-1.7\n"]
    places: dict[int, int] = {}
    size = len(pieces[0])
    for number, body in objects.items():
        content = body.encode("latin-1") if isinstance(body, str) else body
        pieces.append(b"%d 0 obj\n%b\nendobj\n" % (number, content))
        places[number] = size
        size += len(pieces[-1])
    numbers = range(1, max(places) + 1)
    entries = "".join(f"{places.get(n, 0):010} 00000 {'n' if n in places else 'f'} \n" for n in numbers)
    pieces.append(
        f"xref\n0 {max(places) + 1}\n0000000000 65535 f \n{entries}trailer\n<< /Size {max(places) + 1} /Root 1 0 R >>\n"
        f"startxref\n{size}\n%%EOF\n".encode()
    )
    return b"".join(pieces), name


def stream(content: str, entries: str = "", *, packed: bool = False) -> bytes:
    data = zlib.compress(content.encode("latin-1")) if packed else content.encode("latin-1")
    filters = "/Filter /FlateDecode " if packed else ""
    return f"<< /Length {len(data)} {filters}{entries} >>\nstream\n".encode() + data + b"\nendstream"


def shown(lines: int, text: str = "word") -> str:
    """The given number of text lines, one below the other."""
    return "BT /F 10 Tf 1 0 0 1 50 800 Tm 12 TL\n" + f"({text}) Tj T*\n" * lines + "ET\n"


def pages(
    content: bytes,
    *,
    kids: str = "3 0 R",
    count: int = 1,
    page: str = "",
    more: Mapping[int, str | bytes] | None = None,
    catalog: str = "",
) -> File:
    return pdf(
        {
            1: f"<< /Type /Catalog /Pages 2 0 R {catalog} >>",
            2: f"<< /Type /Pages /Kids [{kids}] /Count {count} /MediaBox [0 0 600 850] >>",
            3: f"<< /Type /Page /Parent 2 0 R /Contents 4 0 R {_FONT} {page} >>",
            4: content,
            **(more or {}),
        }
    )


def _one_page_again(size: int) -> File:
    count = max(1, size // 2 // 6)
    return pages(stream(shown(size // 2 // 14)), kids="3 0 R " * count, count=count)


def outline(entries: int, lines: int, *, title: str = "word") -> File:
    """An outline with entries that all point to one page, where every line may match."""
    first = 10
    more: dict[int, str | bytes] = {
        5: f"<< /Type /Outlines /First {first} 0 R /Last {first + entries - 1} 0 R /Count {entries} >>"
    }
    for n in range(entries):
        following = f"/Next {first + n + 1} 0 R" if n < entries - 1 else ""
        more[first + n] = f"<< /Title ({title}) /Parent 5 0 R {following} /Dest [3 0 R /Fit] >>"
    return pages(stream(shown(lines, "a" + title)), more=more, catalog="/Outlines 5 0 R")


def _page_tree(depth: int) -> File:
    more: dict[int, str | bytes] = {10 + n: f"<< /Type /Pages /Kids [{11 + n} 0 R] /Count 1 >>" for n in range(depth)}
    more[10 + depth] = f"<< /Type /Page /MediaBox [0 0 600 850] /Contents 4 0 R {_FONT} >>"
    return pages(stream(shown(3)), kids="10 0 R", more=more)


def png(width: int, height: int, *, color: int = 0) -> File:
    """An image of one colour: a byte holds eight pixels, and a compressed byte about a thousand bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(-(-width // 8))) * height
    header = struct.pack(">IIBBBBB", width, height, 1, color, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts, "a.png"


def tiff(count: int, tags: int, size: int) -> File:
    """A TIFF of several pages of one pixel, each with tags whose values are the same bytes."""
    head = 8 + size
    needed = ((256, 1), (257, 1), (258, 8), (259, 1), (262, 1), (273, 8), (279, 1))
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in needed)
    entries += b"".join(struct.pack("<HHII", 40_000 + n % 25_000, 7, size, 8) for n in range(tags))
    whole = 2 + len(entries) + 4
    pages = [
        struct.pack("<H", min(len(needed) + tags, 65_535))
        + entries
        + struct.pack("<I", head + whole * (n + 1) * (n + 1 < count))
        for n in range(count)
    ]
    return b"II*\0" + struct.pack("<I", head) + bytes(size) + b"".join(pages), "a.tif"


def gif(width: int, height: int) -> File:
    """An image of one pixel with a first frame far larger than the image, to be cleared after display."""
    screen = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x21\xf9\x04\x08\0\0\0\0" + b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0)
    return screen + frame + b"\x02\x02\x44\x01\0\x3b", "a.gif"


def form(content: str, drawn: str = "") -> bytes:
    kind = "/Type /XObject /Subtype /Form /BBox [0 0 600 850]"
    return stream(content, f"{kind} /Resources << {_FONTS} /XObject << {drawn} >> >>")


def drawing(content: str, drawn: str, more: Mapping[int, str | bytes], page: str = "") -> File:
    """One page that draws objects by name."""
    resources = f"/Resources << {_FONTS} /XObject << {drawn} >> >>"
    return pdf(
        {
            1: "<< /Type /Catalog /Pages 2 0 R >>",
            2: "<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 600 850] >>",
            3: f"<< /Type /Page /Parent 2 0 R /Contents 4 0 R {resources} {page} >>",
            4: stream(content),
            **more,
        }
    )


def nested_forms(depth: int, each: int) -> File:
    """Nested forms, each drawing the next one `each` times; the innermost contains text."""
    more = {5 + n: form("/X Do " * each, f"/X {6 + n} 0 R") for n in range(depth)}
    return drawing("/X Do " * each, "/X 5 0 R", {**more, 5 + depth: form(shown(1))})


def _content_again(size: int) -> File:
    content, count = shown(size // 2 // 14), size // 2 // 6
    return pages(b"[" + b"5 0 R " * count + b"]", more={5: stream(content)})


def _appearances(size: int) -> File:
    note = "<< /Type /Annot /Subtype /Stamp /Rect [0 0 9 9] /AP << /N 5 0 R >> >>"
    page = f"/Annots [{'6 0 R ' * (size // 2 // 6)}]"
    fields = {1: "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] >> >>"}
    return drawing(shown(1), "", {**fields, 5: form(shown(size // 2 // 14)), 6: note}, page)


def unfolding(times_packed: int, size: int, entries: str = "") -> bytes:
    """A stream of spaces, compressed the given number of times."""
    data = b"BT /F 10 Tf 50 800 Td (word) Tj ET" + b" " * size
    for _ in range(times_packed):
        data = zlib.compress(data, 9)
    filters = "/FlateDecode " * times_packed
    return f"<< /Length {len(data)} /Filter [{filters}] {entries} >>\nstream\n".encode() + data + b"\nendstream"


def _font(entries: str, more: Mapping[int, str | bytes], text: str = "AAAA") -> File:
    page = f"/Resources << /Font << /G << /Type /Font /BaseFont /A {entries} >> >> >>"
    objects = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        2: "<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 600 850] >>",
        3: f"<< /Type /Page /Parent 2 0 R /Contents 4 0 R {page} >>",
        4: stream(f"BT /G 10 Tf 50 800 Td ({text}) Tj ET"),
    }
    return pdf({**objects, **more})


def _long_meanings(size: int) -> File:
    """A font that maps each character to 512 others."""
    meant = " ".join(f"<{code:02x}> <{'0041' * 512}>" for code in range(32, 64))
    told = stream(
        f"begincmap 1 begincodespacerange <00> <FF> endcodespacerange 32 beginbfchar {meant} endbfchar endcmap"
    )
    return _font("/Subtype /Type1 /ToUnicode 5 0 R", {5: told}, "!" * size)


def _many_meanings(size: int) -> File:
    told = stream("begincmap " + times("1 beginbfrange <0000> <FFFF> <0000> endbfrange ", size) + "endcmap")
    return _font("/Subtype /Type1 /ToUnicode 5 0 R", {5: told})


def _glyphs(size: int) -> File:
    """A font that defines each character as a drawing, repeated up to the size."""
    procedure = stream("5 0 d0 " + times("0 0 1 1 re f ", size // 2))
    entries = "/Subtype /Type3 /FontBBox [0 0 9 9] /FontMatrix [0.1 0 0 0.1 0 0] /CharProcs << /a 5 0 R >>"
    coded = "/Encoding << /Differences [97 /a] >> /FirstChar 97 /LastChar 97 /Widths [5]"
    return _font(f"{entries} {coded}", {5: procedure}, "a" * (size // 2))


def _picture_again(size: int) -> File:
    data = zlib.compress(b"\xff" * (9000 // 8 * 9000), 9)
    entries = "/Type /XObject /Subtype /Image /Width 9000 /Height 9000 /BitsPerComponent 1 /ColorSpace /DeviceGray"
    picture = f"<< {entries} /Filter /FlateDecode /Length {len(data)} >>\nstream\n".encode() + data + b"\nendstream"
    return drawing("q 600 0 0 850 0 0 cm " + "/X Do " * (size // 6) + "Q", "/X 5 0 R", {5: picture})


def rules(across: int, down: int) -> str:
    """Rules of a table with the given number of columns and rows, on a page of 600 by 850 points."""
    upright = (f"{580 * n / across:.0f} 0 m {580 * n / across:.0f} 840 l S\n" for n in range(across + 1))
    level = (f"0 {840 * n / down:.0f} m 580 {840 * n / down:.0f} l S\n" for n in range(down + 1))
    return "".join(upright) + "".join(level)


def _merged_cells_again(size: int) -> File:
    """Pages with a cell of 590 characters beside 60 rows, each of which has the cell's value."""
    upright = "".join(f"{x} 0 m {x} 840 l\n" for x in (0, 290, 350, 410, 470, 530, 580))
    edges = f"{upright}0 0 m 580 0 l 0 840 m 580 840 l\n"
    level = "".join(f"290 {14 * n} m 580 {14 * n} l\n" for n in range(1, 60))
    beside = "".join(f"1 0 0 1 {x} {14 * n + 3} Tm (x) Tj\n" for n in range(60) for x in (300, 360, 420, 480, 540))
    cell = f"1 0 0 1 5 400 Tm /F 0.8 Tf ({'i' * 590}) Tj"
    count = size // 2 // 6
    return pages(stream(f"{edges}{level}S BT /F 9 Tf\n{beside}{cell} ET"), kids="3 0 R " * count, count=count)


def filled_table(columns: int, rows: int) -> str:
    """A table with a character in each cell."""
    width, height = 580 // columns, 840 // rows
    places = ((column, row) for row in range(rows) for column in range(columns))
    shown = "".join(f"1 0 0 1 {width * x + 2} {height * y + 2} Tm (x) Tj\n" for x, y in places)
    return rules(columns, rows) + f"BT /F 5 Tf\n{shown}ET\n"


def _page_of_rules_again(size: int) -> File:
    count = size // 2 // 6
    return pages(stream(filled_table(20, 60)), kids="3 0 R " * count, count=count)


CLASSES: dict[str, Hostile] = {
    "pdf-rules": lambda size: pages(stream(times("0 {n} m 580 {n} l S {n} 0 m {n} 840 l S\n", size) + shown(60))),
    "pdf-a-path-of-rules": lambda size: pages(
        stream(times("0 {n} m 580 {n} l {n} 0 m {n} 840 l\n", size) + "S\n" + shown(60))
    ),
    "pdf-forms-of-rules": lambda size: drawing(
        rules(9, 50) + "/X Do " * (size // 2 // 6), "/X 5 0 R", {5: form(rules(9, 50) + shown(size // 2 // 14))}
    ),
    "pdf-page-of-rules-again": _page_of_rules_again,
    "pdf-lines-between-rules": lambda size: pages(stream(rules(9, 50) + shown(size // 14, "w o r d"))),
    "pdf-merged-cells-again": _merged_cells_again,
    "pdf-one-page-again": _one_page_again,
    "pdf-pages-that-are-not-there": lambda _: pages(stream(shown(3)), count=100_000_000),
    "pdf-outline": lambda size: outline(size // 2 // 90, size // 2 // 14),
    "pdf-outline-of-long-titles": lambda size: outline(size // 4 // 90, size // 8 // 14, title="w" * 300),
    "pdf-outline-in-a-circle": lambda _: pages(
        stream(shown(3)), catalog="/Outlines 5 0 R",
        more={5: "<< /First 6 0 R /Last 6 0 R >>",
              6: "<< /Title (a) /Parent 5 0 R /Next 6 0 R /First 6 0 R /Dest [3 0 R /Fit] >>"},
    ),
    "pdf-page-tree": lambda size: _page_tree(size // 60),
    "pdf-pages-in-a-circle": lambda _: pages(stream(shown(3)), kids="2 0 R 3 0 R", count=1000),
    "pdf-lines": lambda size: pages(stream(shown(size // 14))),
    "pdf-lines-at-one-place": lambda size: pages(
        stream("BT /F 10 Tf\n" + times("1 0 0 1 50 800 Tm (x) Tj\n", size) + "ET\n")
    ),
    "pdf-characters": lambda size: pages(stream(f"BT /F 10 Tf 50 800 Td ({times('word ', size)}) Tj ET")),
    "pdf-raised": lambda size: pages(
        stream("BT /F 10 Tf 50 800 Td\n" + times("(x) Tj 3 Ts (2) Tj 0 Ts\n", size) + "ET\n")
    ),
    "pdf-sizes": lambda size: pages(
        stream("BT 50 800 Td\n" + times("/F 1{n} Tf (Heading {n}) Tj 0 -30 Td\n", size) + "ET\n")
    ),
    "pdf-nested-arrays": lambda size: pages(stream(shown(3)), more={5: "[" * (size // 2) + "]" * (size // 2)}),
    "pdf-nested-content": lambda size: pages(stream("q " * (size // 4) + shown(1) + "Q " * (size // 4))),
    "pdf-annotations": lambda size: pages(
        stream(shown(1)), page="/Annots [" + times("<< /Subtype /Text /Rect [0 0 1 1] >> ", size) + "]"
    ),
    "pdf-open-objects": lambda size: (b"%PDF-1.7\n" + b"1 0 obj\n" * (size // 8), "a.pdf"),
    "pdf-open-dictionaries": lambda size: (b"%PDF-1.7\n1 0 obj\n" + b"<<" * (size // 2), "a.pdf"),
    "pdf-cross-references": lambda size: (
        b"%PDF-1.7\n" + b"xref\n0 1\n0000000000 65535 f \ntrailer\n<< /Prev 9 >>\n" * (size // 60)
        + b"startxref\n9\n%%EOF\n", "a.pdf",
    ),
    "pdf-form-again": lambda size: drawing("/X Do " * (size // 2 // 6), "/X 5 0 R", {5: form(shown(size // 2 // 14))}),
    "pdf-nested-forms": lambda size: nested_forms(20, size // 20 // 6),
    "pdf-forms-in-a-circle": lambda size: drawing(
        "/X Do " * 9, "/X 5 0 R", {5: form("/X Do " * (size // 6), "/X 5 0 R")}
    ),
    "pdf-content-again": _content_again,
    "pdf-appearances-again": _appearances,
    "pdf-packed-content": lambda _: pages(unfolding(3, 200_000_000)),
    "pdf-font-that-unfolds": lambda _: _font(
        "/Subtype /TrueType /FontDescriptor << /Type /FontDescriptor /FontName /A /Flags 4 /FontFile2 5 0 R >>",
        {5: unfolding(2, 100_000_000, "/Length1 100000000")},
    ),
    "pdf-font-of-long-meanings": _long_meanings,
    "pdf-font-of-many-meanings": _many_meanings,
    "pdf-font-of-drawings": _glyphs,
    "pdf-picture-again": _picture_again,
    "png-many-pixels": lambda _: png(50_000, 50_000),
    "png-within-the-limit": lambda _: png(9_990, 9_990),
    "png-long": lambda _: png(20, 4_900_000),
    "tiff-pages": lambda size: tiff(size // 90, 0, 8),
    "tiff-tags-with-the-same-bytes": lambda size: tiff(1, size // 2 // 12, size // 2),
    "tiff-pages-with-the-same-bytes": lambda size: tiff(size // 2 // 330, 20, size // 2),
    "png-wide": lambda _: png(4_900_000, 20),
}  # fmt: skip
