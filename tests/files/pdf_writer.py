"""Writes small PDF files byte by byte, so that a test controls the exact position of everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO


def line(x: float, y: float, text: str, size: float = 10) -> bytes:
    """Return content that shows one line of Helvetica; Latin-1 only."""
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return b"BT /F1 %g Tf 1 0 0 1 %g %g Tm (%s) Tj ET\n" % (size, x, y, escaped.encode("cp1252"))


def lines(x: float, y: float, texts: Sequence[str], size: float = 10, pitch: float = 12) -> bytes:
    """Return lines below each other, the first at height `y`."""
    return b"".join(line(x, y - i * pitch, text, size) for i, text in enumerate(texts))


def glyphs(x: float, y: float, codes: bytes, size: float = 10) -> bytes:
    """Return content that shows glyphs of the second font, whose meanings are given to `write_pdf`."""
    return b"BT /F2 %g Tf 1 0 0 1 %g %g Tm <%s> Tj ET\n" % (size, x, y, codes.hex().encode())


def black_box(x: float, y: float, width: float, height: float) -> bytes:
    """Return a visible shape that is not text."""
    return b"%g %g %g %g re f\n" % (x, y, width, height)


def ruled(across: Sequence[float], down: Sequence[float], *, thin_boxes: bool = False) -> bytes:
    """Return a grid of rules with columns at the given places, and rows at the given heights from the top."""
    left, right, top, bottom = across[0], across[-1], down[0], down[-1]
    lines = [(left, y, right, y) for y in down] + [(x, bottom, x, top) for x in across]
    if thin_boxes:
        return b"".join(black_box(x, y, max(0.5, x2 - x), max(0.5, y2 - y)) for x, y, x2, y2 in lines)
    return b"".join(rule(*ends) for ends in lines)


def rule(x: float, y: float, to_x: float, to_y: float) -> bytes:
    """Return content that draws a line of half a point."""
    return b"0.5 w %g %g m %g %g l S\n" % (x, y, to_x, to_y)


def write_pdf(
    pages: Sequence[bytes],
    *,
    information: Mapping[str, str] | None = None,
    outline: Sequence[tuple[str, int, float | None]] = (),
    turned: int = 0,
    size: tuple[int, int] = (595, 842),
    meanings: Mapping[int, str] | None = None,
    encryption: bytes = b"",
    nameless: str = "",
) -> bytes:
    """Return a PDF file.

    Args:
        pages: content of each page.
        information: entries of the document information dictionary.
        outline: title, 0-based page and target height in points, all on one level.
        turned: degrees clockwise that each page is turned when shown.
        size: width and height of the pages in points; A4 if not given.
        meanings: characters that the codes of the second font stand for.
        encryption: an encryption dictionary; nothing is encrypted.
        nameless: letters of which the font does not say what characters they are.
    """
    count = len(pages)
    first_page, first_entry = 5, 5 + 2 * count
    meant = first_entry + len(outline) + bool(information)
    objects: dict[int, bytes] = {
        1: b"<< /Type /Catalog /Pages 2 0 R /Lang (en-GB) " + (b"/Outlines 4 0 R " if outline else b"") + b">>",
        2: b"<< /Type /Pages /Count %d /Kids [%s] >>"
        % (count, b" ".join(b"%d 0 R" % (first_page + 2 * i) for i in range(count))),
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding %s >>" % _encoding(nameless),
        4: b"<< /Type /Outlines /First %d 0 R /Last %d 0 R >>" % (first_entry, first_entry + len(outline) - 1),
    }
    for i, content in enumerate(pages):
        objects[first_page + 2 * i] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Rotate %d "
            b"/Resources << /Font << /F1 3 0 R %s >> >> /Contents %d 0 R >>"
            % (*size, turned, b"/F2 %d 0 R" % meant if meanings else b"", first_page + 2 * i + 1)
        )
        objects[first_page + 2 * i + 1] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)
    for i, (title, page, top) in enumerate(outline):
        view = b"/XYZ 0 %g 0" % top if top is not None else b"/Fit"
        following = b"/Next %d 0 R " % (first_entry + i + 1) if i + 1 < len(outline) else b""
        objects[first_entry + i] = b"<< /Title (%s) /Parent 4 0 R %s/Dest [%d 0 R %s] >>" % (
            title.encode("cp1252"),
            following,
            first_page + 2 * page,
            view,
        )
    if meanings:
        objects[meant] = objects[3].replace(b"/Encoding", b"/ToUnicode %d 0 R /Encoding" % (meant + 1))
        objects[meant + 1] = _to_unicode(meanings)
    trailer = b"/Root 1 0 R"
    if encryption:
        trailer += b" /ID [<00> <00>] /Encrypt " + encryption
    if information:
        number = first_entry + len(outline)
        entries = b" ".join(b"/%s (%s)" % (k.encode(), v.encode("cp1252")) for k, v in information.items())
        objects[number] = b"<< " + entries + b" >>"
        trailer += b" /Info %d 0 R" % number
    return _assemble(objects, trailer)


def _encoding(nameless: str) -> bytes:
    if not nameless:
        return b"/WinAnsiEncoding"
    names = b" ".join(b"%d /q%d" % (ord(letter), ord(letter)) for letter in nameless)
    return b"<< /Type /Encoding /BaseEncoding /WinAnsiEncoding /Differences [%s] >>" % names


def _to_unicode(meanings: Mapping[int, str]) -> bytes:
    """Return a stream that maps codes of one byte to characters."""
    rows = b"".join(
        b"<%02X> <%s>\n" % (code, text.encode("utf-16-be").hex().encode()) for code, text in meanings.items()
    )
    content = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Meanings def /CMapType 2 def\n"
        b"1 begincodespacerange <00> <FF> endcodespacerange\n%d beginbfchar\n%sendbfchar\nendcmap end end"
    ) % (len(meanings), rows)
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)


def _assemble(objects: Mapping[int, bytes], trailer: bytes) -> bytes:
    content = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for number in sorted(objects):
        table += b"%010d 00000 n \n" % len(content)
        content += b"%d 0 obj\n%s\nendobj\n" % (number, objects[number])
    end = b"trailer << /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, len(content))
    return content + table + end


def encrypted(content: bytes, password: str, algorithm: str = "AES-256") -> bytes:
    """Return the same file, encrypted with a password."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(BytesIO(content)))
    writer.encrypt(password, owner_password="owner of " + password, algorithm=algorithm)
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def scanned(content: bytes) -> bytes:
    """Return the same pages as images, without a text layer."""
    import pypdfium2

    document = pypdfium2.PdfDocument(content)
    images = [document[i].render(scale=2).to_pil().convert("RGB") for i in range(len(document))]
    document.close()
    out = BytesIO()
    images[0].save(out, "PDF", save_all=True, append_images=images[1:], resolution=144)
    return out.getvalue()


def with_filled_field(content: bytes, value: str) -> bytes:
    """Return the same file with a filled-in form field on its first page."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, StreamObject, TextStringObject

    writer = PdfWriter(clone_from=PdfReader(BytesIO(content)))
    page = writer.pages[0]
    shown = StreamObject()
    shown.set_data(line(2, 4, value))
    shown.update(
        {
            NameObject("/Type"): NameObject("/XObject"),
            NameObject("/Subtype"): NameObject("/Form"),
            NameObject("/BBox"): ArrayObject(map(FloatObject, (0, 0, 200, 16))),
            NameObject("/Resources"): page["/Resources"],
        }
    )
    field = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Annot"),
            NameObject("/Subtype"): NameObject("/Widget"),
            NameObject("/FT"): NameObject("/Tx"),
            NameObject("/F"): FloatObject(4),
            NameObject("/T"): TextStringObject("name"),
            NameObject("/V"): TextStringObject(value),
            NameObject("/Rect"): ArrayObject(map(FloatObject, (120, 696, 320, 712))),
            NameObject("/AP"): DictionaryObject({NameObject("/N"): writer._add_object(shown)}),
        }
    )
    reference = writer._add_object(field)
    page[NameObject("/Annots")] = ArrayObject([reference])
    writer.root_object[NameObject("/AcroForm")] = DictionaryObject({NameObject("/Fields"): ArrayObject([reference])})
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def with_attachments(content: bytes, names: Sequence[str]) -> bytes:
    """Return the same file with small files embedded in it."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(BytesIO(content)))
    for name in names:
        writer.add_attachment(name, b"1,2")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def with_pinned_file(content: bytes, name: str) -> bytes:
    """Return the same file with another file attached to its last page as an annotation."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, StreamObject, TextStringObject

    writer = PdfWriter(clone_from=PdfReader(BytesIO(content)))
    page = writer.pages[-1]
    stream = StreamObject()
    stream.set_data(b"1,2")
    stream[NameObject("/Type")] = NameObject("/EmbeddedFile")
    file = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Filespec"),
            NameObject("/F"): TextStringObject(name),
            NameObject("/UF"): TextStringObject(name),
            NameObject("/EF"): DictionaryObject({NameObject("/F"): writer._add_object(stream)}),
        }
    )
    pin = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Annot"),
            NameObject("/Subtype"): NameObject("/FileAttachment"),
            NameObject("/Rect"): ArrayObject(map(FloatObject, (20, 20, 40, 40))),
            NameObject("/FS"): writer._add_object(file),
        }
    )
    page[NameObject("/Annots")] = ArrayObject([*page.get("/Annots", ()), writer._add_object(pin)])
    out = BytesIO()
    writer.write(out)
    return out.getvalue()
