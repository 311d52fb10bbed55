"""All extractors, and the function that runs the right one."""

from __future__ import annotations

from dataclasses import replace

from pydantic import SecretStr

from parquetry import ids
from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument
from parquetry.extract import media_types as kinds
from parquetry.extract import ocr
from parquetry.extract.allowance import reading
from parquetry.extract.base import Extractor
from parquetry.extract.delimited import DelimitedExtractor
from parquetry.extract.detect import detect
from parquetry.extract.docx.reader import DocxExtractor
from parquetry.extract.epub import EpubExtractor
from parquetry.extract.html.reader import WebExtractor
from parquetry.extract.image import ImageExtractor
from parquetry.extract.mail.reader import MailExtractor
from parquetry.extract.markdown import MarkdownExtractor
from parquetry.extract.markup import MarkupExtractor
from parquetry.extract.notebook import NotebookExtractor
from parquetry.extract.odf.reader import OdtExtractor
from parquetry.extract.pdf.reader import PdfExtractor
from parquetry.extract.pptx import PptxExtractor
from parquetry.extract.records import RecordsExtractor
from parquetry.extract.rst import RstExtractor
from parquetry.extract.rtf.reader import RtfExtractor
from parquetry.extract.sheets.reader import SheetExtractor
from parquetry.extract.source_code import SourceCodeExtractor
from parquetry.extract.subtitles import SubtitleExtractor
from parquetry.extract.text import PlainTextExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings

EXTRACTORS: tuple[Extractor, ...] = (
    PdfExtractor(),
    DocxExtractor(),
    PptxExtractor(),
    SheetExtractor(),
    OdtExtractor(),
    RtfExtractor(),
    EpubExtractor(),
    MailExtractor(),
    WebExtractor(),
    MarkdownExtractor(),
    RstExtractor(),
    PlainTextExtractor(),
    SubtitleExtractor(),
    DelimitedExtractor(),
    RecordsExtractor(),
    NotebookExtractor(),
    MarkupExtractor(),
    SourceCodeExtractor(),
    ImageExtractor(),
)

_BY_MEDIA_TYPE = {media_type: extractor for extractor in EXTRACTORS for media_type in extractor.media_types}
_WAY_OUT = {
    kinds.DOC: "save it as .docx",
    kinds.PPT: "save it as .pptx",
    kinds.ZIP: "unpack it",
    "application/x-tar": "unpack it",
    "application/gzip": "unpack it",
    "application/x-7z-compressed": "unpack it",
    "application/vnd.rar": "unpack it",
    "application/vnd.apple.pages": "export it as .docx or .pdf",
    "application/vnd.apple.numbers": "export it as .xlsx",
    "application/vnd.apple.keynote": "export it as .pptx or .pdf",
    "application/postscript": "convert it to .pdf",
    "image/tiff": "convert it to .png or .pdf",
    "image/bmp": "convert it to .png",
    "image/heic": "convert it to .jpg",
    "image/avif": "convert it to .jpg",
}


def extractor_for(media_type: str) -> Extractor | None:
    """Return the extractor that reads a media type; None if there is none."""
    return _BY_MEDIA_TYPE.get(media_type)


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
    extraction = _read(_BY_MEDIA_TYPE[kinds.PLAIN], document, kinds.PLAIN, settings)
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
