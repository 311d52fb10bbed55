"""All extractors, and the function that runs the right one.

An extractor is imported when a media type that it reads occurs: all of them take longer than a run that finds nothing
new.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument
from parquetry.extract import media_types as kinds
from parquetry.extract.allowance import reading
from parquetry.extract.base import Extractor
from parquetry.extract.detect import detect
from parquetry.extract.readers import BY_MEDIA_TYPE, imported, reader_of
from parquetry.model import Extraction, RawDocument

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_ARCHIVE = "unpack it, or give it to `parquetry refresh`, which opens archives"
_DRAWN = "export it as .pdf, for example with `soffice --headless --convert-to pdf`"
_SPOKEN = "add its transcript, for example as subtitles (.srt or .vtt)"
_WAY_OUT = {
    kinds.DOC: "to read it: pip install 'parquetry[office]'; or save it as .docx",
    kinds.PPT: "to read it: pip install 'parquetry[office]'; or save it as .pptx",
    kinds.ZIP: _ARCHIVE,
    "application/x-tar": _ARCHIVE,
    "application/x-7z-compressed": (
        "unpack it, or give it to `parquetry refresh`, which opens archives; needed: pip install 'parquetry[sevenzip]'"
    ),
    "application/vnd.rar": "unpack it, for example with 7-Zip",
    "application/vnd.apple.pages": "export it as .docx or .pdf",
    "application/vnd.apple.numbers": "export it as .xlsx",
    "application/vnd.apple.keynote": "export it as .pptx or .pdf",
    "application/postscript": "convert it to .pdf, for example with ps2pdf",
    "application/x-mobipocket-ebook": "convert it to .epub, for example with Calibre",
    "application/vnd.visio": "export it as .pdf",
    "application/x-ole-storage": "export it as .pdf, for example with the program that wrote it",
    "application/vnd.oasis.opendocument.graphics": _DRAWN,
    "application/vnd.oasis.opendocument.graphics-template": _DRAWN,
    "application/vnd.oasis.opendocument.chart": _DRAWN,
    "application/vnd.oasis.opendocument.formula": _DRAWN,
    "application/vnd.oasis.opendocument.base": "export its tables as .csv",
    "application/vnd.oasis.opendocument.database": "export its tables as .csv",
    "image/vnd.djvu": "convert it to .pdf, for example with ddjvu",
    **dict.fromkeys(("image/bmp", "image/x-icon"), "convert it to .png"),
    "image/vnd.adobe.photoshop": "export it as .png or .pdf",
    "application/vnd.sqlite3": "export its tables as .csv",
    "application/vnd.apache.parquet": "export its rows as .csv",
    **dict.fromkeys(("audio/mpeg", "audio/flac", "audio/wav", "audio/mp4", "audio/ogg"), _SPOKEN),
    **dict.fromkeys(("video/mpeg", "video/mp4", "video/quicktime", "video/x-msvideo", "video/webm"), _SPOKEN),
    **dict.fromkeys(("video/mp2t", "video/x-flv", "video/x-matroska"), _SPOKEN),
    kinds.HEIC: "to read it: pip install 'parquetry[heic]'; or convert it to .jpg",
    "image/avif": "convert it to .jpg",
}


def extractor_for(media_type: str) -> Extractor | None:
    """Return the extractor that reads a media type; None if there is none, or if its extra is not installed."""
    reader = reader_of(media_type)
    return None if reader is None else open_extractor(reader)


@cache
def open_extractor(reader: str) -> Extractor:
    """Return an extractor by its key in `READERS`, imported when it is first needed."""
    made: Extractor = imported(reader)()
    return made


def extract(document: RawDocument, settings: ExtractionSettings) -> Extraction:
    """Extract the text of a document of any type, within its limits (`parquetry.extract.allowance`).

    Raises:
        SkippedDocument: `empty`, `unsupported-type` or `no-text`.
        BrokenDocument: the document is damaged, locked or over a limit.
    """
    media_type = detect(document.content, document.filename)
    try:
        return _extracted(document, media_type, settings)
    except DocumentError as error:
        # That of the document in a compressed file is known already.
        error.media_type = error.media_type or media_type
        raise


def _extracted(document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
    if not document.content:
        raise SkippedDocument("empty", "the file has no content")
    extractor = extractor_for(media_type)
    if extractor is None:
        raise SkippedDocument("unsupported-type", _unsupported(media_type))
    extraction = _read(extractor, document, media_type, settings)
    most = kinds.UTF8_PER_BYTE * len(document.content)
    if kinds.keeps_its_size(document.filename) and len(extraction.text.encode()) > most:
        extraction = _read_within(most, extractor, document, media_type, settings)
    if not extraction.text.strip():
        raise SkippedDocument("no-text", f"there is no text in this {media_type}")
    return extraction


def _read(
    extractor: Extractor, document: RawDocument, media_type: str, settings: ExtractionSettings, most: int | None = None
) -> Extraction:
    # A plan counts one part for files that are text by name.
    with reading(len(document.content), most, 1 if kinds.keeps_its_size(document.filename) else None):
        try:
            return extractor.extract(document, media_type, settings)
        except RecursionError as error:
            raise BrokenDocument("too-deep", "what is in it is nested too deeply to be read") from error


def _read_within(
    most: int, extractor: Extractor, document: RawDocument, media_type: str, settings: ExtractionSettings
) -> Extraction:
    """Extract a document whose name promises a plan at most `most` bytes of text, but whose content is of another type.

    Text is read unchanged as plain text, which stays within the limit; of other types, only the beginning is kept.
    """
    if not kinds.is_text(media_type):
        return _read(extractor, document, media_type, settings, most // kinds.UTF8_PER_CHARACTER)
    extraction = _read(open_extractor(BY_MEDIA_TYPE[kinds.PLAIN]), document, kinds.PLAIN, settings)
    note = f"it is read as plain text: as {media_type} it would give more text than its name lets expect"
    return replace(extraction, warnings=(*extraction.warnings, note))


def _unsupported(media_type: str) -> str:
    if media_type == kinds.OCTETS:
        return "it is binary content of no known kind"
    way_out = _WAY_OUT.get(media_type)
    return f"{media_type} is not supported" + (f"; {way_out}" if way_out else "")
