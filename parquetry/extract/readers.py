"""Attributes of the extractors, known before these are imported: media types, and what a text depends on.

Importing an extractor takes longer than a run that finds nothing new, and every run needs the fingerprints of the
documents that it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from parquetry import ids
from parquetry.extract import media_types as kinds

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings


class ReaderFacts(NamedTuple):
    """The attributes of an extractor (`parquetry.extract.base`)."""

    name: str
    version: int
    """raised whenever the same bytes may give different text: documents are extracted again"""
    media_types: tuple[str, ...]
    settings_used: tuple[str, ...] = ()
    """fields of `ExtractionSettings` that affect the result: changing one re-extracts the documents of this extractor
    and no others"""
    libraries: tuple[str, ...] = ()
    """modules that it imports with its first document, and that processes share if they are imported before the fork"""


_UNPACKS = ("max_unpacked_bytes",)
# Attachments may be of any type, so settings of other extractors affect a mail, too.
_OF_ATTACHMENTS = ("max_unpacked_bytes", "passwords", "ocr", "include_image_descriptions", "main_content_only")
READERS: dict[str, ReaderFacts] = {
    "pdf.reader:PdfExtractor": ReaderFacts("pdf", 8, (kinds.PDF,), ("ocr", "passwords"), ("pypdf", "pypdfium2")),
    "docx.reader:DocxExtractor": ReaderFacts("docx", 4, (kinds.DOCX,), _UNPACKS),
    "pptx:PptxExtractor": ReaderFacts("pptx", 3, (kinds.PPTX,), _UNPACKS),
    "sheets.reader:SheetExtractor": ReaderFacts("sheets", 4, (kinds.XLSX, kinds.XLS, kinds.XLSB, kinds.ODS), _UNPACKS),
    "odf.reader:OdtExtractor": ReaderFacts("odt", 4, (kinds.ODT, kinds.ODP), _UNPACKS),
    "rtf.reader:RtfExtractor": ReaderFacts("rtf", 2, (kinds.RTF,)),
    "old_office:OldOfficeExtractor": ReaderFacts("old-office", 1, (kinds.DOC, kinds.PPT)),
    "epub:EpubExtractor": ReaderFacts("epub", 5, (kinds.EPUB,), _UNPACKS),
    "mail.reader:MailExtractor": ReaderFacts("mail", 9, (kinds.EMAIL, kinds.MSG, kinds.MBOX), _OF_ATTACHMENTS),
    "html.reader:WebExtractor": ReaderFacts("web", 7, (kinds.HTML, "application/xhtml+xml"), ("main_content_only",)),
    "markdown:MarkdownExtractor": ReaderFacts("markdown", 4, (kinds.MARKDOWN,)),
    "rst:RstExtractor": ReaderFacts("rst", 3, (kinds.RST,)),
    "latex.reader:LatexExtractor": ReaderFacts("latex", 3, (kinds.LATEX,)),
    "light_markup:LightMarkupExtractor": ReaderFacts("light-markup", 3, (kinds.ORG, kinds.ASCIIDOC)),
    "text:PlainTextExtractor": ReaderFacts("text", 6, (kinds.PLAIN,)),
    "compressed:CompressedExtractor": ReaderFacts("compressed", 1, tuple(kinds.COMPRESSED), _UNPACKS),
    "subtitles:SubtitleExtractor": ReaderFacts("subtitles", 2, (kinds.SRT, kinds.VTT)),
    "delimited:DelimitedExtractor": ReaderFacts("delimited", 4, (kinds.CSV, kinds.TSV)),
    "records:RecordsExtractor": ReaderFacts("records", 4, (kinds.JSON, kinds.JSON_LINES)),
    "notebook:NotebookExtractor": ReaderFacts("notebook", 5, (kinds.NOTEBOOK,)),
    "markup:MarkupExtractor": ReaderFacts("markup", 7, (kinds.XML,), ("main_content_only",)),
    "source_code:SourceCodeExtractor": ReaderFacts(
        "source-code",
        3,
        (
            *("text/x-python", "text/x-javascript", "text/x-typescript", "text/x-rust", "text/x-go", "text/x-java"),
            *("text/x-c", "text/x-c++", "text/x-sh", "text/x-sql", "text/x-toml", "text/x-yaml", "text/x-ini"),
            kinds.SOURCE,
        ),
    ),
    "image:ImageExtractor": ReaderFacts(
        "image",
        2,
        (kinds.PNG, kinds.JPEG, kinds.WEBP, kinds.GIF, kinds.TIFF, kinds.HEIC),
        ("ocr", "include_image_descriptions"),
    ),
}
"""module and class of each extractor, within this package -> its attributes"""

BY_MEDIA_TYPE = {media_type: place for place, reader in READERS.items() for media_type in reader.media_types}
"""media type -> key in `READERS`"""
_EXTRAS = {
    kinds.DOC: "old_office:available",
    kinds.PPT: "old_office:available",
    kinds.HEIC: "image:heic_available",
}
"""media type -> module and function that tells if the extra that reads it is installed"""


def reader_of(media_type: str) -> str | None:
    """Return the key in `READERS` for a media type; None if nothing reads it, or if its extra is not installed."""
    if media_type in _EXTRAS and not imported(_EXTRAS[media_type])():
        return None
    return BY_MEDIA_TYPE.get(media_type)


def modules_ahead(media_types: Iterable[str | None]) -> list[str]:
    """Return the modules that processes which read documents of these types had better share."""
    places = {BY_MEDIA_TYPE[each] for each in media_types if each in BY_MEDIA_TYPE}
    found = sorted((place, READERS[place].libraries) for place in places if READERS[place].libraries)
    return [each for place, libraries in found for each in (f"parquetry.extract.{place.partition(':')[0]}", *libraries)]


def imported(place: str) -> Callable[[], Any]:
    """Return a function or class of this package by its module and name, `module:name`."""
    module, _, name = place.partition(":")
    found: Callable[[], Any] = getattr(import_module(f"parquetry.extract.{module}"), name)
    return found


def fingerprint(media_type: str, settings: ExtractionSettings) -> str:
    """Return a hash of everything besides the bytes that affects the extraction of a media type.

    Args:
        media_type: type returned by `detect`; unsupported types are allowed, so that a later extractor is noticed.
        settings: settings of the extraction; only the fields that the extractor uses count, secrets as hashes.
    """
    place = reader_of(media_type)
    if place is None:
        return ids.settings_hash({"extractor": None})
    reader = READERS[place]
    used = {name: _plain(getattr(settings, name)) for name in sorted(reader.settings_used)}
    if "ocr" in used:
        used["ocr"] = settings.ocr and ocr_available()
    return ids.settings_hash({"extractor": reader.name, "version": reader.version, "settings": used})


@cache
def ocr_available() -> bool:
    """Return True if the `ocr` extra is installed."""
    return all(find_spec(name) is not None for name in ("rapidocr", "onnxruntime"))


def _plain(value: object) -> object:
    # Processes that read documents import this module, and make no fingerprints.
    from pydantic import SecretStr

    if isinstance(value, SecretStr):
        return ids.content_hash(value.get_secret_value().encode())
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
