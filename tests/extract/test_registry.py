"""The registry, and the contract of every extractor for any bytes."""

from __future__ import annotations

import gzip
import lzma
import re
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import SecretStr

import parquetry.extract
from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument
from parquetry.extract import media_types as kinds
from parquetry.extract import readers, registry
from parquetry.extract.base import ListedExtractor
from parquetry.extract.readers import READERS, fingerprint, modules_ahead
from parquetry.extract.registry import extract, extractor_for, open_extractor
from parquetry.extract.source_code import LANGUAGES
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.files.doc_writer import write_doc, write_ppt
from tests.files.msg_writer import msg
from tests.files.pdf_writer import line, write_pdf

SETTINGS = ExtractionSettings(ocr=False)


def packed(parts: dict[str, str]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


def docx() -> bytes:
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    office = "http://schemas.openxmlformats.org/package/2006"
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    return packed(
        {
            "[Content_Types].xml": f'<Types xmlns="{office}/content-types"><Default Extension="rels" ContentType='
            f'"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
            f'ContentType="{main}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{office}/relationships"><Relationship Id="r1" Type="{relation}" '
            f'Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{word}"><w:body><w:p><w:r><w:t>planted token</w:t></w:r></w:p>'
            "</w:body></w:document>",
        }
    )


def epub() -> bytes:
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>One</h1><p>planted token</p></body></html>'
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/><manifest><item id="a" href="a.xhtml" '
        'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="a.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    return packed({"mimetype": kinds.EPUB, "META-INF/container.xml": container, "a.opf": opf, "a.xhtml": page})


def odt() -> bytes:
    names = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f'<office:document-content xmlns:office="{names}:office:1.0" xmlns:text="{names}:text:1.0"><office:body>'
        "<office:text><text:p>planted token</text:p></office:text></office:body></office:document-content>"
    )
    return packed({"mimetype": kinds.ODT, "content.xml": content})


def png(kind: str = "PNG") -> bytes:
    out = BytesIO()
    Image.effect_noise((40, 40), 60).save(out, kind)
    return out.getvalue()


VALID: dict[str, bytes] = {
    "a.pdf": write_pdf([line(72, 700, "planted token"), line(72, 700, "two")], outline=[("two", 1, 700.0)]),
    "a.docx": docx(),
    "a.epub": epub(),
    "a.odt": odt(),
    "a.rtf": rb"{\rtf1\ansi{\fonttbl{\f0 A;}}{\stylesheet{\s1 heading 1;}}\pard\s1 H\par\pard planted token\u233?\'e9"
    rb"\par\trowd\pard\intbl 1\cell 2\cell\row\pard{\listtext\'b7\tab}x{\footnote y}\par}",
    "a.html": b"<!doctype html><title>T</title><h1>H</h1><p>planted token</p><table><tr><td>1<td>2</table>",
    "a.xml": b'<?xml version="1.0"?><list><item name="a">planted token</item><item/></list>',
    "a.eml": b"From: a@b.c\r\nTo: d@e.f\r\nSubject: S\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=B"
    b"\r\n\r\n--B\r\n\r\nplanted token\r\n--B\r\nContent-Type: text/html\r\n\r\n<p>x</p>\r\n--B--\r\n",
    "a.msg": msg(
        {0x0037: "S", 0x1000: "planted token", 0x0C1A: "A"}, [{0x3001: "B", 0x0C15: 1}], [{0x3707: "a", 0x3701: b"x"}]
    ),
    "a.mbox": b"From a@b.c Thu Feb 29 08:15:30 2024\nFrom: a@b.c\nSubject: S\nDate: x\n\nplanted token\n\n" * 2,
    "a.md": b"---\ntitle: T\n---\n# H\n\nplanted token\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n```\n",
    "a.rst": b"Title\n=====\n\nplanted token\n\n.. code:: py\n\n   x\n\n==  ==\na   b\n==  ==\n1   2\n==  ==\n",
    "a.tex": b"\\title{T}\\section{H} planted token $x^2$ \\begin{tabular}{l}a & b\\\\c\\end{tabular}\\footnote{\\'e}"
    b"\\begin{itemize}\\item x % c\n\\end{itemize}\\begin{verbatim}y\\end{verbatim}",
    "a.org": b"#+TITLE: T\n* TODO H :tag:\n:PROPERTIES:\n:END:\n# c\nplanted token [[a][b]]\n| a | b |\n"
    b"|---+---|\n| 1 | 2 |\n"
    b"#+begin_src py\nx\n#+end_src\n",
    "a.adoc": b"= T\n:author: A\n\n== H\n\nplanted token link:a[b]\n\n[source,py]\n----\nx\n----\n\n|===\n"
    b"|a |b\n\n|1 |2\n|===\n",
    "a.doc": write_doc("Ships\rplanted token\r"),
    "a.ppt": write_ppt([["Ships", "planted token"], ["Quays", "x"]]),
    "a.txt": b"planted token\n\nAnd more.\n",
    "a.srt": b"1\n00:00:01,000 --> 00:00:04,000\n<i>planted token</i>\n\n2\n00:01:01,000 --> 00:01:04,000\nx\n",
    "a.vtt": b"WEBVTT - T\nLanguage: en\n\na\n00:01.000 --> 00:04.000\n<v Ann>planted token\n\nNOTE x\n",
    "a.csv": b'name,count\n"planted token",4\nb,5\n',
    "a.tsv": b"name\tcount\nplanted token\t4\n",
    "a.json": b'{"a": [{"b": "planted token", "c": null}, {"b": 1.5e3, "c": true}]}',
    "a.jsonl": b'{"a": "planted token"}\n{"a": 2}\n',
    "a.ipynb": b'{"cells": [{"cell_type": "markdown", "source": ["planted token"], "metadata": {}}], "metadata": {}, '
    b'"nbformat": 4, "nbformat_minor": 5}',
    "a.py": b'"""planted token"""\n\n\ndef f(x):\n    return x\n',
    "a.yaml": b"a:\n  - planted token\n",
    "a.txt.gz": gzip.compress(b"planted token\n\nAnd more.\n", mtime=0),
    "a.docx.xz": lzma.compress(docx()),
    "a.png": png(),
    "a.tif": png("TIFF"),
}


def _open_document(kind: str) -> bytes:
    """Return a file of OpenDocument that says nothing but its type."""
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
    return stream.getvalue()


def outcome(content: bytes, filename: str) -> Extraction | DocumentError:
    """Return an extraction or the refusal; any other exception fails the test."""
    try:
        return extract(RawDocument(content, filename), SETTINGS)
    except (SkippedDocument, BrokenDocument) as error:
        refusal: DocumentError = error
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", refusal.reason)
    assert refusal.detail
    return refusal


def assert_in_order(extraction: Extraction) -> None:
    end = 0
    for part in extraction.parts:
        assert end <= part.start < part.end <= len(extraction.text)
        end = part.end
    starts = [heading.start for heading in extraction.headings]
    assert starts == sorted(starts)
    assert all(0 <= start < len(extraction.text) for start in starts)
    assert all(heading.level >= 1 and heading.title for heading in extraction.headings)


def test_every_media_type_is_read_by_one_extractor_and_every_name_is_its_own():
    claimed = [media_type for reader in READERS.values() for media_type in reader.media_types]
    assert len(claimed) == len(set(claimed))
    assert len({reader.name for reader in READERS.values()}) == len(READERS)


@pytest.mark.parametrize("place", READERS)
def test_an_extractor_has_the_name_and_version_that_make_its_fingerprints(place: str):
    extractor, reader = open_extractor(place), READERS[place]
    assert isinstance(extractor, ListedExtractor)
    assert extractor.id == f"{reader.name}/{reader.version}"


def test_source_code_is_read_in_every_language_that_has_a_name():
    assert set(READERS["source_code:SourceCodeExtractor"].media_types) == set(LANGUAGES)


def test_every_module_with_an_extractor_is_known_to_the_registry():
    folder = Path(parquetry.extract.__file__).parent
    modules = {file.relative_to(folder).with_suffix("") for file in folder.rglob("*.py") if _has_extractor(file)}
    assert {".".join(module.parts) for module in modules} == {reader.partition(":")[0] for reader in READERS}


def _has_extractor(file: Path) -> bool:
    return re.search(r"^class .*\(ListedExtractor\)", file.read_text(), re.MULTILINE) is not None


def test_every_extractor_names_settings_that_exist():
    for place, reader in READERS.items():
        assert set(reader.settings_used) <= set(ExtractionSettings.model_fields), place


@pytest.mark.parametrize("media_type", sorted(set(kinds.BY_EXTENSION.values()) | set(kinds.BY_NAME.values())))
def test_what_a_name_promises_is_read_or_known_as_unsupported(media_type: str):
    """A text format that is detected but has no extractor would be skipped although it is readable."""
    if kinds.is_text(media_type):
        assert extractor_for(media_type) is not None


@pytest.mark.parametrize("filename", [name for name in VALID if name not in {"a.png", "a.tif"}])
def test_a_valid_file_is_extracted_with_its_token(filename: str):
    extraction = outcome(VALID[filename], filename)
    assert isinstance(extraction, Extraction), extraction
    assert "planted token" in extraction.text
    assert extraction.extractor.count("/") == 1
    assert_in_order(extraction)


@pytest.mark.parametrize("filename", VALID)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_mutated_files_are_extracted_or_refused_with_a_reason(filename: str, data: st.DataObject):
    content = bytearray(VALID[filename])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(content) - 1, 0)))
        length = data.draw(st.integers(0, 30))
        content[at : at + length] = data.draw(st.binary(max_size=30))
    found = outcome(bytes(content), filename)
    if isinstance(found, Extraction):
        assert_in_order(found)


@pytest.mark.parametrize("filename", VALID)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.98])
def test_files_cut_short_are_extracted_or_refused_with_a_reason(filename: str, share: float):
    found = outcome(VALID[filename][: int(len(VALID[filename]) * share)], filename)
    if isinstance(found, Extraction):
        assert_in_order(found)


@pytest.mark.parametrize(
    ("content", "filename", "told"),
    [
        (b"", "a.pdf", "empty: the file has no content"),
        (b" \n\t\r\n", "a.txt", "no-text: "),
        (b"<!doctype html><script>1</script>", "a.html", "no-text: "),
        (b",\n,\n", "a.csv", "no-text: "),
        (b"Rar!\x1a\x07" + bytes(60), "a.rar", "unsupported-type: application/vnd.rar is not supported; unpack it"),
        (
            b"7z\xbc\xaf'\x1c" + bytes(60),
            "a.7z",
            "unsupported-type: application/x-7z-compressed is not supported; unpack",
        ),
        (
            gzip.compress(bytes(257) + b"ustar" + bytes(999)),
            "a.tar.gz",
            "unsupported-type: application/x-tar is not supported; unpack it, or give it to `parquetry refresh`",
        ),
        (b"fLaC" + bytes(60), "a.flac", "unsupported-type: audio/flac is not supported; add its transcript"),
        (b"PAR1" + bytes(60), "a", "unsupported-type: application/vnd.apache.parquet is not supported; export"),
        (b"%!PS", "a.ps", "unsupported-type: application/postscript is not supported; convert it to .pdf, for example"),
        (
            _open_document("graphics"),
            "a.odg",
            "unsupported-type: application/vnd.oasis.opendocument.graphics is not supported; export it as .pdf",
        ),
        (
            _open_document("base"),
            "a.odb",
            "unsupported-type: application/vnd.oasis.opendocument.base is not supported; export its tables as .csv",
        ),
        (b"\x7fELF" + bytes(60), "a", "unsupported-type: application/x-elf is not supported"),
        (bytes(range(256)) * 9, "a", "unsupported-type: it is binary content of no known kind"),
    ],
)
def test_what_cannot_be_indexed_is_skipped_with_a_reason(content: bytes, filename: str, told: str):
    refusal = outcome(content, filename)
    assert isinstance(refusal, SkippedDocument)
    assert str(refusal).startswith(told)


def test_an_extractor_that_returns_no_text_is_not_trusted(monkeypatch: pytest.MonkeyPatch):
    class Observer:
        def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
            return Extraction(" \n", (), (), None, {}, media_type, "silent/1")

    monkeypatch.setattr(registry, "extractor_for", lambda media_type: Observer())
    assert str(outcome(b"words", "a.txt")) == "no-text: there is no text in this text/plain"


def test_fingerprint_changes_with_the_settings_that_shape_the_text_and_with_no_others():
    plain = ExtractionSettings(ocr=False)
    locked = ExtractionSettings(ocr=False, passwords=(SecretStr("secret"),))
    slower = ExtractionSettings(ocr=False, timeout_seconds=7, workers=3)
    assert fingerprint(kinds.PDF, plain) == fingerprint(kinds.PDF, slower)
    assert fingerprint(kinds.PDF, plain) != fingerprint(kinds.PDF, locked)
    assert fingerprint(kinds.MARKDOWN, plain) == fingerprint(kinds.MARKDOWN, locked)
    assert fingerprint(kinds.PDF, plain) != fingerprint(kinds.PNG, plain)
    assert len({fingerprint(kinds.PDF, locked) for _ in range(3)}) == 1


def test_installing_ocr_changes_the_fingerprint_of_what_it_concerns(monkeypatch: pytest.MonkeyPatch):
    wanted = ExtractionSettings(ocr=True)
    before = {kind: fingerprint(kind, wanted) for kind in (kinds.PDF, kinds.PNG, kinds.MARKDOWN)}
    monkeypatch.setattr(readers, "ocr_available", lambda: False)
    changed = {kind for kind, hashed in before.items() if fingerprint(kind, wanted) != hashed}
    assert changed == {kinds.PDF, kinds.PNG}


def test_a_new_extractor_version_changes_the_fingerprint(monkeypatch: pytest.MonkeyPatch):
    before = fingerprint(kinds.PDF, SETTINGS)
    monkeypatch.setitem(READERS, "pdf.reader:PdfExtractor", READERS["pdf.reader:PdfExtractor"]._replace(version=2**20))
    assert fingerprint(kinds.PDF, SETTINGS) != before


def test_a_type_that_nothing_reads_has_a_fingerprint_of_its_own():
    assert (
        fingerprint("application/vnd.rar", SETTINGS)
        == fingerprint(kinds.OCTETS, SETTINGS)
        != fingerprint(kinds.PDF, SETTINGS)
    )


def test_importing_the_registry_loads_no_heavy_library():
    heavy = "pypdfium2 pypdf PIL rapidocr onnxruntime cv2 numpy mammoth pptx openpyxl python_calamine lxml trafilatura "
    heavy += "docutils openai tree_sitter markdown_it charset_normalizer"
    program = f"import sys, parquetry.extract.registry; print(*[n for n in {heavy.split()} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == ""


def test_what_processes_share_is_what_the_extractor_would_import_with_a_document():
    """A library that an extractor no longer uses would be imported by every run with such documents."""
    assert modules_ahead({kinds.MARKDOWN, "application/x-unknown", None}) == []
    assert modules_ahead({kinds.PDF, kinds.MARKDOWN}) == ["parquetry.extract.pdf.reader", "pypdf", "pypdfium2"]
    program = (
        "import sys\nfrom parquetry.extract.readers import modules_ahead\n"
        "from parquetry.extract.registry import extract\nfrom parquetry.model import RawDocument\n"
        "from parquetry.settings.sections import ExtractionSettings\n"
        f"extract(RawDocument({VALID['a.pdf']!r}, 'a.pdf'), ExtractionSettings(ocr=False))\n"
        f"print(*[each for each in modules_ahead([{kinds.PDF!r}]) if each not in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == ""


def test_a_fingerprint_imports_no_extractor():
    program = (
        "import sys\nfrom parquetry.extract.readers import READERS, fingerprint\n"
        "from parquetry.settings.sections import ExtractionSettings\n"
        f"for kind in {(kinds.MARKDOWN, kinds.PDF, kinds.HTML)!r}:\n    fingerprint(kind, ExtractionSettings())\n"
        "of_readers = {'parquetry.extract.' + place.partition(':')[0] for place in READERS}\n"
        "print(*of_readers & set(sys.modules), *{'parquetry.extract.layout', 'statistics'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == ""
