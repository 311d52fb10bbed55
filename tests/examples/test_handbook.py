"""The handbook covers the most common formats, every planted fact is found in its place, and it can be rebuilt."""

import functools
import io
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image, ImageChops

from parquetry.extract.registry import extract
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
HANDBOOK = EXAMPLES / "handbook"
CONTENT = EXAMPLES / "content"
CATALOGUE = tomllib.loads((EXAMPLES / "facts.toml").read_text("utf-8"))
FACTS = CATALOGUE["fact"]

TITLED = [".pdf", ".docx", ".pptx", ".xlsx", ".ods", ".odt", ".epub", ".eml", ".html", ".md", ".rst"]
"""formats with a title of their own"""
DOCUMENTS = [*TITLED, ".txt", ".csv", ".tsv", ".json", ".jsonl", ".xml"]
CODE = [".py", ".js", ".ts", ".rs", ".go", ".java", ".c", ".cpp", ".h", ".sh", ".sql", ".toml", ".yaml", ".ini"]
IMAGES = [".png", ".jpg", ".webp", ".gif"]
FORMATS = [*DOCUMENTS, *CODE, *IMAGES]

PATHS = sorted(path.relative_to(HANDBOOK).as_posix() for path in HANDBOOK.rglob("*") if path.is_file())
PICTURES = {path for path in PATHS if Path(path).suffix in IMAGES} | {"workshop/lift-inspection.pdf"}
"""formats with compressed pixels, whose bytes depend on the processor and whose text is slow to read"""


def _fact_id(fact):
    return f"{fact['path']}: {fact['question']}".encode("ascii", "replace").decode()


@functools.cache
def _extraction(path):
    file = HANDBOOK / path
    return extract(RawDocument(file.read_bytes(), file.name), ExtractionSettings())


def _words(text):
    """Return the text without the marks and line breaks that differ between formats."""
    return " ".join(text.replace("*", "").split()).casefold()


@pytest.mark.parametrize("suffix", FORMATS)
def test_format_is_in_the_handbook_and_has_a_fact(suffix):
    assert [path for path in PATHS if path.endswith(suffix)]
    assert [fact for fact in FACTS if fact["path"].endswith(suffix)]


def test_plain_text_comes_in_three_encodings():
    """An encoding counts if the file cannot be read as UTF-8."""
    odd = {"sales/lyon.txt": "cp1252", "sales/osaka.txt": "shift_jis"}
    for path in [path for path in PATHS if path.endswith(".txt")]:
        content = (HANDBOOK / path).read_bytes()
        if encoding := odd.get(path):
            with pytest.raises(UnicodeDecodeError):
                content.decode("utf-8")
            content.decode(encoding)
        else:
            content.decode("utf-8")
    assert set(odd) <= set(PATHS)


def test_handbook_is_small():
    """It is part of the repository and of every demo run."""
    assert sum((HANDBOOK / path).stat().st_size for path in PATHS) < 1_500_000


@pytest.mark.parametrize("fact", FACTS, ids=_fact_id)
def test_fact_is_found_at_its_place(fact):
    extraction = _extraction(fact["path"])
    text = extraction.text
    if place := fact.get("part"):
        (part,) = [part for part in extraction.parts if [part.kind, part.number] == place]
        text = text[part.start : part.end]
    assert _words(fact["phrase"]) in _words(text)


def test_every_phrase_stands_in_one_document_only():
    """Otherwise a right answer could cite another document."""
    texts = {path: _words(_extraction(path).text) for path in PATHS if path not in PICTURES}
    assert len(texts) == len(PATHS) - len(PICTURES)
    for fact in FACTS:
        expected = [] if fact["path"] in PICTURES else [fact["path"]]
        assert [path for path, text in texts.items() if _words(fact["phrase"]) in text] == expected


@pytest.mark.parametrize("noise", CATALOGUE["noise"], ids=lambda noise: noise["phrase"])
def test_what_is_not_content_is_not_extracted(noise):
    assert noise["phrase"] in (HANDBOOK / noise["path"]).read_text("utf-8")
    assert _words(noise["phrase"]) not in _words(_extraction(noise["path"]).text)


@pytest.mark.parametrize("path", [path for path in PATHS if Path(path).suffix in TITLED])
def test_document_of_a_format_with_titles_has_its_title(path):
    assert _extraction(path).title


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """Build twice, in processes that differ in hash seed and time zone."""
    folders = [tmp_path_factory.mktemp("handbook") for _ in range(2)]
    started = [
        subprocess.Popen(
            [sys.executable, str(EXAMPLES / "build_handbook.py"), str(folder)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            stdout=subprocess.DEVNULL,
        )
        for folder, seed, zone in zip(folders, ("1", "2"), ("UTC", "Asia/Tokyo"), strict=True)
    ]
    assert [process.wait(60) for process in started] == [0, 0]
    return folders


def _content(folder):
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_building_twice_gives_identical_bytes(builds):
    first, second = map(_content, builds)
    assert len(first) == sum(file.is_file() for file in CONTENT.rglob("*"))
    assert first == second


def test_committed_documents_are_what_their_sources_build(builds):
    """Commit a changed source together with its document: run `python examples/build_handbook.py`."""
    for path, content in _content(builds[0]).items():
        committed = (HANDBOOK / path).read_bytes()
        if path in PICTURES:
            _assert_same_picture(content, committed)
        else:
            assert content == committed, path


def _assert_same_picture(built, committed):
    """Lossy codecs round differently from one processor to the next, by a few steps of 255."""
    one, other = map(_picture, (built, committed))
    assert one.size == other.size
    assert max(high for _, high in ImageChops.difference(one, other).getextrema()) <= 12


def _picture(content):
    if content.startswith(b"%PDF"):
        return pypdfium2.PdfDocument(content)[0].render(scale=2).to_pil().convert("RGB")
    return Image.open(io.BytesIO(content)).convert("RGB")
