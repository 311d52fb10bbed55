"""All extractors, and the function that runs the right one.

An extractor is imported when a media type that it reads occurs: all of them take longer than a run that finds nothing
new.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from pydantic import SecretStr

from parquetry import ids
from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument
from parquetry.extract import media_types as kinds
from parquetry.extract import ocr
from parquetry.extract.allowance import reading
from parquetry.extract.base import Extractor
from parquetry.extract.detect import detect
from parquetry.model import Extraction, RawDocument
from parquetry.settings.extraction import ExtractionSettings

READERS: dict[str, tuple[str, ...]] = {
    "pdf.reader:PdfExtractor": (kinds.PDF,),
    "docx.reader:DocxExtractor": (kinds.DOCX,),
    "pptx:PptxExtractor": (kinds.PPTX,),
    "sheets.reader:SheetExtractor": (kinds.XLSX, kinds.XLS, kinds.XLSB, kinds.ODS),
    "odf.reader:OdtExtractor": (kinds.ODT, kinds.ODP),
    "rtf.reader:RtfExtractor": (kinds.RTF,),
    "old_office:OldOfficeExtractor": (kinds.DOC, kinds.PPT),
    "epub:EpubExtractor": (kinds.EPUB,),
    "mail.reader:MailExtractor": (kinds.EMAIL, kinds.MSG, kinds.MBOX),
    "html.reader:WebExtractor": (kinds.HTML, "application/xhtml+xml"),
    "markdown:MarkdownExtractor": (kinds.MARKDOWN,),
    "rst:RstExtractor": (kinds.RST,),
    "latex.reader:LatexExtractor": (kinds.LATEX,),
    "light_markup:LightMarkupExtractor": (kinds.ORG, kinds.ASCIIDOC),
    "text:PlainTextExtractor": (kinds.PLAIN,),
    "subtitles:SubtitleExtractor": (kinds.SRT, kinds.VTT),
    "delimited:DelimitedExtractor": (kinds.CSV, kinds.TSV),
    "records:RecordsExtractor": (kinds.JSON, kinds.JSON_LINES),
    "notebook:NotebookExtractor": (kinds.NOTEBOOK,),
    "markup:MarkupExtractor": (kinds.XML,),
    "source_code:SourceCodeExtractor": (
        *("text/x-python", "text/x-javascript", "text/x-typescript", "text/x-rust", "text/x-go", "text/x-java"),
        *("text/x-c", "text/x-c++", "text/x-sh", "text/x-sql", "text/x-toml", "text/x-yaml", "text/x-ini"),
        kinds.SOURCE,
    ),
    "image:ImageExtractor": (kinds.PNG, kinds.JPEG, kinds.WEBP, kinds.GIF, kinds.TIFF, kinds.HEIC),
}
"""module and class of each extractor, within this package -> the media types that it reads"""

_BY_MEDIA_TYPE = {media_type: reader for reader, media_types in READERS.items() for media_type in media_types}
_EXTRAS = {
    kinds.DOC: "old_office:available",
    kinds.PPT: "old_office:available",
    kinds.HEIC: "image:heic_available",
}
"""media type -> module and function that tells if the extra that reads it is installed"""
_ARCHIVE = "unpack it, or give it to `parquetry refresh`, which opens archives"
_COMPRESSED = "unpack it, or if it is an archive, give it to `parquetry refresh`, which opens archives"
_SPOKEN = "add its transcript, for example as subtitles (.srt or .vtt)"
_WAY_OUT = {
    kinds.DOC: "to read it: pip install 'parquetry[office]'; or save it as .docx",
    kinds.PPT: "to read it: pip install 'parquetry[office]'; or save it as .pptx",
    kinds.ZIP: _ARCHIVE,
    "application/x-tar": _ARCHIVE,
    "application/gzip": _COMPRESSED,
    "application/x-xz": _COMPRESSED,
    "application/zstd": _COMPRESSED,
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
    "image/vnd.djvu": "convert it to .pdf, for example with ddjvu",
    "image/bmp": "convert it to .png",
    "image/vnd.adobe.photoshop": "export it as .png or .pdf",
    "application/vnd.sqlite3": "export its tables as .csv",
    "application/vnd.apache.parquet": "export its rows as .csv",
    **dict.fromkeys(("audio/mpeg", "audio/flac", "audio/wav", "audio/mp4", "audio/ogg"), _SPOKEN),
    **dict.fromkeys(("video/mpeg", "video/mp4", "video/quicktime", "video/x-msvideo", "video/webm"), _SPOKEN),
    kinds.HEIC: "to read it: pip install 'parquetry[heic]'; or convert it to .jpg",
    "image/avif": "convert it to .jpg",
}


def extractor_for(media_type: str) -> Extractor | None:
    """Return the extractor that reads a media type; None if there is none, or if its extra is not installed."""
    if media_type in _EXTRAS and not _imported(_EXTRAS[media_type])():
        return None
    reader = _BY_MEDIA_TYPE.get(media_type)
    return None if reader is None else open_extractor(reader)


@cache
def open_extractor(reader: str) -> Extractor:
    """Return an extractor by its key in `READERS`, imported when it is first needed."""
    made: Extractor = _imported(reader)()
    return made


def _imported(place: str) -> Callable[[], Any]:
    module, _, name = place.partition(":")
    found: Callable[[], Any] = getattr(import_module(f"parquetry.extract.{module}"), name)
    return found


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
        error.media_type = media_type
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
    extraction = _read(open_extractor(_BY_MEDIA_TYPE[kinds.PLAIN]), document, kinds.PLAIN, settings)
    note = f"it is read as plain text: as {media_type} it would give more text than its name lets expect"
    return replace(extraction, warnings=(*extraction.warnings, note))


def fingerprint(media_type: str, settings: ExtractionSettings) -> str:
    """Return a hash of everything besides the bytes that affects the extraction of a media type.

    Args:
        media_type: type returned by `detect`; unsupported types are allowed, so that a later extractor is noticed.
        settings: settings of the extraction; only the fields that the extractor uses count, secrets as hashes.
    """
    extractor = extractor_for(media_type)
    if extractor is None:
        return ids.settings_hash({"extractor": None})
    used = {name: _plain(getattr(settings, name)) for name in sorted(extractor.settings_used)}
    if "ocr" in used:
        used["ocr"] = settings.ocr and ocr.available()
    return ids.settings_hash({"extractor": extractor.name, "version": extractor.version, "settings": used})


def _plain(value: object) -> object:
    if isinstance(value, SecretStr):
        return ids.content_hash(value.get_secret_value().encode())
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _unsupported(media_type: str) -> str:
    if media_type == kinds.OCTETS:
        return "it is binary content of no known kind"
    way_out = _WAY_OUT.get(media_type)
    return f"{media_type} is not supported" + (f"; {way_out}" if way_out else "")
