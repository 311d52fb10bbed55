"""Detects the type of a document from its content first and from its file name second.

The name decides only between kinds of text that are indistinguishable by content, and for damaged documents, so that
they fail as the type they were meant to be instead of being skipped as unknown.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from io import BytesIO

from parquetry.extract import media_types as kinds
from parquetry.extract.detect_text import by_text, text_head
from parquetry.extract.media_types import by_filename, is_text

_SAMPLE_BYTES = 4 * 1024
_PDF_WITHIN_BYTES = 1024
_ZIP_ENTRIES = 65_535
_ZIP_PART_BYTES = 1 << 20

_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", kinds.PNG),
    (0, b"\xff\xd8\xff", kinds.JPEG),
    (0, b"GIF87a", kinds.GIF),
    (0, b"GIF89a", kinds.GIF),
    (0, b"II*\x00", kinds.TIFF),
    (0, b"MM\x00*", kinds.TIFF),
    (0, b"II+\x00\x08\x00\x00\x00", kinds.TIFF),
    (0, b"MM\x00+\x00\x08\x00\x00", kinds.TIFF),
    (0, b"8BPS\x00", "image/vnd.adobe.photoshop"),
    (0, b"\x00\x00\x01\x00", "image/x-icon"),
    (0, b"AT&TFORM", "image/vnd.djvu"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"OggS", "audio/ogg"),
    (0, b"MThd", "audio/midi"),
    (0, b"FLV\x01", "video/x-flv"),
    (0, b"\x00\x00\x01\xba", "video/mpeg"),
    (0, b"\x00\x00\x01\xb3", "video/mpeg"),
    (0, b"\x1f\x8b", kinds.GZIP),
    (0, b"\xfd7zXZ\x00", kinds.XZ),
    (0, b"(\xb5/\xfd", kinds.ZSTD),
    (0, b"7z\xbc\xaf'\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (257, b"ustar", "application/x-tar"),
    (0, b"\x7fELF", "application/x-elf"),
    (0, b"\xca\xfe\xba\xbe", "application/java-vm"),
    (0, b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (0, b"\x00asm", "application/wasm"),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (0, b"PAR1", "application/vnd.apache.parquet"),
    (0, b"OTTO\x00", "font/otf"),
    (0, b"\x00\x01\x00\x00\x00", "font/ttf"),
    (0, b"wOFF", "font/woff"),
    (0, b"wOF2", "font/woff2"),
    (60, b"BOOKMOBI", "application/x-mobipocket-ebook"),
    (0, b"{\\rtf", kinds.RTF),
    (0, b"%!PS", "application/postscript"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_RIFF = {b"WEBP": kinds.WEBP, b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_FTYP = {
    b"heic": kinds.HEIC, b"heix": kinds.HEIC, b"hevc": kinds.HEIC, b"heim": kinds.HEIC, b"mif1": kinds.HEIC,
    b"msf1": kinds.HEIC, b"avif": "image/avif", b"avis": "image/avif", b"M4A ": "audio/mp4", b"M4B ": "audio/mp4",
    b"qt  ": "video/quicktime",
}  # fmt: skip
_OLE_STREAMS = {
    "__properties_version1.0": kinds.MSG,
    "PowerPoint Document": kinds.PPT,
    "WordDocument": kinds.DOC,
    "Workbook": kinds.XLS,
    "Book": kinds.XLS,
    "VisioDocument": "application/vnd.visio",
}
"""stream -> type; types that embed others as objects come first"""
_OOXML_MAIN = (
    (re.compile(rb"wordprocessingml\.(document|template)\.main\+xml|ms-word\.\w+\.macroEnabled\w*\.main"), kinds.DOCX),
    (re.compile(rb"presentationml\.\w+\.main\+xml|ms-powerpoint\.\w+\.macroEnabled\.main"), kinds.PPTX),
    (re.compile(rb"spreadsheetml\.\w+\.main\+xml|ms-excel\.(sheet|template)\.macroEnabled\.main"), kinds.XLSX),
    (re.compile(rb"ms-excel\.sheet\.binary\.macroEnabled\.main"), kinds.XLSB),
    (re.compile(rb"ms-visio\.\w+\.main\+xml"), "application/vnd.visio"),
)  # fmt: skip
_CPP = re.compile(r"^[ \t]*(?:(?:class|namespace|template|using)\b|(?:public|private|protected):)|\bstd::", re.M)


def detect(content: bytes, filename: str) -> str:
    """Return the media type of a document.

    Args:
        content: the whole document; only bounded parts are inspected.
        filename: file name, used for its extension.

    Returns:
        The type; `application/octet-stream` if the bytes are not recognised.
    """
    named = by_filename(filename)
    found = _by_signature(content, named)
    if found:
        return found
    head = text_head(content)
    if head is None:
        return _binary(named)
    found = by_text(content, head, named)
    if found:
        return found
    if named is None:
        return kinds.PLAIN
    if named == "text/x-c" and filename.lower().endswith(".h") and _CPP.search(head):
        return "text/x-c++"
    if named in {kinds.XLS, kinds.XLSX} and "\t" in head.partition("\n")[0]:
        return kinds.TSV  # many programs export this as "Excel"
    return named


def image_type(content: bytes, filename: str) -> str | None:
    """Return the media type of an image, by its first bytes alone; None for anything else.

    Args:
        content: the whole document.
        filename: file name, used for its extension.
    """
    packed = content.startswith((b"PK\x03\x04", b"PK\x05\x06", _OLE))
    found = None if packed else _by_signature(content, by_filename(filename))
    return found if found and found.startswith("image/") else None


def _binary(named: str | None) -> str:
    """Return a type for unrecognised binary content: the type that its name promises (damaged), else unknown."""
    if named == "text/x-typescript":
        return "video/mp2t"
    if named and (not is_text(named) or named in kinds.STRICTLY_PARSED):
        return named
    return kinds.OCTETS


# --- binary formats


def _by_signature(content: bytes, named: str | None) -> str | None:
    if _is_pdf(content, named):
        return kinds.PDF
    if content.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(content, named)
    if content.startswith(_OLE):
        return _ole_kind(content, named)
    for offset, signature, media_type in _SIGNATURES:
        if content.startswith(signature, offset):
            return media_type
    return _by_structure(content)


def _by_structure(content: bytes) -> str | None:
    """Detect formats with short signatures, which need a second check."""
    if content.startswith(b"RIFF") and content[8:12] in _RIFF:
        return _RIFF[content[8:12]]
    if content[4:8] == b"ftyp" and content[0] == 0:
        return _FTYP.get(content[8:12], "video/mp4")
    if content.startswith(b"\x1a\x45\xdf\xa3"):
        return "video/webm" if b"webm" in content[:64] else "video/x-matroska"
    if content.startswith(b"BM") and content[6:10] == bytes(4) and content[15:18] == bytes(3):
        return "image/bmp"
    if content.startswith(b"BZh") and content[4:10] == b"1AY&SY":
        return kinds.BZIP2
    if content.startswith(b"MZ") and b"\x00" in content[:64]:
        return "application/vnd.microsoft.portable-executable"
    if len(content) > 3 and content[0] == 0xFF and content[1] in {0xFB, 0xFA, 0xF3, 0xF2} and b"\x00" in content[:512]:
        return "audio/mpeg"
    return None


def _is_pdf(content: bytes, named: str | None) -> bool:
    at = content.find(b"%PDF-", 0, _PDF_WITHIN_BYTES + 5)
    if at <= 0:
        return at == 0
    if named not in {None, kinds.PDF, kinds.OCTETS}:
        return False  # a program or page that mentions the signature
    return named == kinds.PDF or b" obj" in content[at : at + _SAMPLE_BYTES]


def _zip_kind(content: bytes, named: str | None) -> str:
    """Inspect the directory of a zip archive and one or two small parts; unpack nothing else."""
    fallback = named if named and not is_text(named) and named.startswith("application/") else kinds.ZIP
    if content[30:38] == b"mimetype" and content.startswith(b"PK\x03\x04"):
        size = struct.unpack_from("<I", content, 18)[0] if len(content) >= 38 else 0
        extra = struct.unpack_from("<H", content, 28)[0]
        declared = content[38 + extra : 38 + extra + min(size or 64, 128)]
        found = _open_document(declared)
        if found:
            return found
    end = content.rfind(b"PK\x05\x06", max(0, len(content) - 65_557))
    if end < 0 or len(content) < end + 12:
        return fallback
    if struct.unpack_from("<H", content, end + 10)[0] >= _ZIP_ENTRIES:
        return fallback
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            return _archive_kind(archive) or fallback
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, KeyError, RuntimeError, EOFError):
        return fallback


def _open_document(declared: bytes) -> str | None:
    """Return the type in the `mimetype` part of an OpenDocument file or e-book."""
    for media_type in (kinds.ODT, kinds.ODS, kinds.ODP, kinds.EPUB):
        if declared.startswith(media_type.encode()):
            return media_type
    other = re.match(rb"application/[\w.+-]+", declared)
    return other.group().decode() if other else None


def _archive_kind(archive: zipfile.ZipFile) -> str | None:
    names = set(archive.namelist())
    if "[Content_Types].xml" in names:
        with archive.open("[Content_Types].xml") as part:
            types = part.read(_ZIP_PART_BYTES)
        for pattern, media_type in _OOXML_MAIN:
            if pattern.search(types):
                return media_type
    if "mimetype" in names:
        with archive.open("mimetype") as part:
            return _open_document(part.read(128).strip())
    if "META-INF/container.xml" in names:
        return kinds.EPUB
    for name, media_type in (
        ("word/document.xml", kinds.DOCX),
        ("ppt/presentation.xml", kinds.PPTX),
        ("xl/workbook.xml", kinds.XLSX),
    ):
        if name in names:
            return media_type
    return None


def _ole_kind(content: bytes, named: str | None) -> str:
    """Distinguish the OLE2 formats by stream names; an encrypted office file gets the type of its name."""
    present = [
        media_type
        for stream, media_type in _OLE_STREAMS.items()
        if content.find(stream.encode("utf-16-le") + b"\x00\x00") >= 0
    ]
    if named in present:
        return named
    if "EncryptedPackage".encode("utf-16-le") in content:
        return named if named in kinds.OFFICE_ZIPS else kinds.DOCX
    if present:
        return present[0]
    return named if named in {kinds.XLS, kinds.DOC, kinds.PPT, kinds.MSG} else kinds.OLE
