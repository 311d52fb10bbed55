"""Files built to exhaust their readers cost no more than their size allows, in the processes that runs use."""

from __future__ import annotations

import pytest

from parquetry.errors import DocumentError
from parquetry.extract.allowance import CHARACTERS_FREE, CHARACTERS_PER_BYTE
from parquetry.extract.detect import detect
from parquetry.extract.registry import extract
from parquetry.model import RawDocument
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.sections import ExtractionSettings
from parquetry.tasks.engine.workers import WorkerPool
from tests.extract import hostile_data, hostile_documents, hostile_office, hostile_pdf, hostile_sheets

CLASSES = (
    hostile_data.CLASSES
    | hostile_sheets.CLASSES
    | hostile_office.CLASSES
    | hostile_pdf.CLASSES
    | hostile_documents.CLASSES
)
SIZE = 150_000
"""bytes: quadratic work does not finish in time, linear work takes at most a second"""
EXHAUSTED = {"timeout", "memory", "crashed", "unexpected"}
MAX_OUT = 64
"""maximum characters per unpacked byte of a document, including title, headings and metadata"""


@pytest.fixture(scope="module")
def pool():
    settings = ExtractionSettings(workers=1, timeout_seconds=600, memory_mb=1536, ocr=False)
    made = WorkerPool(settings, ChunkingSettings(), None)
    yield made
    made.close()


def outcome(pool, document):
    """Return the extraction, or the reason for the refusal."""
    try:
        return pool.result(pool.prepare(document)), None
    except DocumentError as error:
        return None, error.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_a_hostile_file_is_read_or_refused_within_what_its_size_allows(pool, name):
    document = RawDocument(*CLASSES[name](SIZE))
    prepared, refused = outcome(pool, document)
    assert refused not in EXHAUSTED
    if prepared is None:
        return
    extraction = prepared.extraction
    beside = sum(len(heading.title) for heading in extraction.headings) + len(str(extraction.metadata))
    unpacked = max(SIZE, len(document.content))
    assert len(extraction.text) <= 2 * (CHARACTERS_FREE + CHARACTERS_PER_BYTE * unpacked)
    assert beside <= MAX_OUT * unpacked
    assert len(prepared.chunks) <= 100 + len(extraction.text) // 100


def reason(content: bytes | str, name: str) -> str:
    content = content.encode() if isinstance(content, str) else content
    with pytest.raises(DocumentError) as refused:
        extract(RawDocument(content, name), ExtractionSettings())
    return refused.value.reason


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("[" * 30_000 + "]" * 30_000, "data.json"),
        ('{"a":' * 30_000 + "1" + "}" * 30_000, "data.json"),
        hostile_data.nested_multiparts(1000),
        hostile_data.nested_multiparts(1000, "alternative"),
        hostile_data.nested_mails(1000),
    ],
    ids=["arrays", "objects", "multiparts", "alternatives", "mails"],
)
def test_what_is_nested_too_deeply_is_refused_as_such(content, name):
    assert reason(content, name) == "too-deep"


@pytest.mark.parametrize(
    "text",
    [
        "+++\na = " + "[" * 30_000 + "]" * 30_000 + "\n+++\nText.",
        "+++\na = " + "{a=" * 15_000 + "1" + "}" * 15_000 + "\n+++\nText.",
        "+++\na" + ".a" * 30_000 + " = 1\n+++\nText.",
        "---\na: " + "[" * 30_000 + "\n---\nText.",
        "---\n" + "\n".join(" " * n + "a:" for n in range(300)) + "\n---\nText.",
    ],
    ids=["toml-arrays", "toml-tables", "toml-key", "yaml-flow", "yaml-block"],
)
def test_front_matter_that_is_nested_too_deeply_stays_in_the_text(text):
    extraction = extract(RawDocument(text.encode(), "page.md"), ExtractionSettings())
    assert extraction.text.startswith(text[:3])
    assert extraction.text.endswith("Text.")
    assert extraction.warnings == ("front matter could not be read: nested deeper than 100 levels (too-deep)",)


@pytest.mark.parametrize(
    "front",
    ["a: !!timestamp x", 'a: !!int ""', "a: !!bool x", "a: 1" + ":59" * 200 + ".5", "a: &a {<<: *a}", "a: !!float x"],
)
def test_values_of_front_matter_that_are_not_what_they_say_are_no_error(front):
    extraction = extract(RawDocument(f"---\n{front}\n---\nText.".encode(), "page.md"), ExtractionSettings())
    assert extraction.text.endswith("Text.")
    assert len(extraction.warnings) == 1


def test_a_number_without_end_is_left_out_of_the_front_matter():
    text = f"+++\na = 0x{'f' * 20_000}\nb = [0x{'f' * 20_000}]\nc = {2**64}\n+++\nText."
    assert extract(RawDocument(text.encode(), "page.md"), ExtractionSettings()).metadata == {"c": 2**64}


def test_merge_keys_of_front_matter_are_followed_as_long_as_they_do_not_grow():
    text = "---\na: &a {x: 1}\nb: &b {<<: *a, y: 2}\n<<: [*a, *b]\ntitle: T\n---\nText."
    extraction = extract(RawDocument(text.encode(), "page.md"), ExtractionSettings())
    assert (extraction.title, extraction.metadata) == ("T", {"x": 1, "y": 2})


def test_short_rows_beside_a_wide_one_are_not_filled_up():
    content, name = hostile_data.wide_row(16_000).encode(), "data.csv"
    assert detect(content, name) == "text/csv"
    text = extract(RawDocument(content, name), ExtractionSettings()).text
    assert len(text) < 40 * len(content)
    assert text.count("| a | b |\n") == 1999


def test_a_path_of_any_length_does_not_multiply():
    content = '{"' + "k" * 20_000 + '":[' + '{"a":[1]},' * 2_000 + "1]}"
    extraction = extract(RawDocument(content.encode(), "data.json"), ExtractionSettings())
    assert len(extraction.text) < 450 * 2_000
    assert extraction.text.startswith("…kkk")
    assert extraction.warnings == ("4002 paths are written without the beginning",)


def test_a_long_header_of_encoded_words_is_read_to_its_end():
    words = "".join(f"=?utf-8?q?w{n}_?=\n " for n in range(3000))
    mail = f"From: a@b.c\nTo: a@b.c\nDate: x\nSubject: {words}end\n\nText.\n"
    text = extract(RawDocument(mail.encode(), "mail.eml"), ExtractionSettings()).text
    assert " ".join(f"w{n}" for n in range(3000)) + " end" in text.replace("\n", " ")


def test_the_plainer_version_of_a_mail_is_chosen_whatever_is_left_open_in_it():
    mail = (
        'From: a@b.c\nTo: a@b.c\nDate: x\nContent-Type: multipart/alternative; boundary="b"\n\n--b\n\nHello there'
        " <<<script\n--b\nContent-Type: text/html\n\n<style>p {}</style><p>Hello there</p><script>x()\n--b--\n"
    )
    assert "Hello there <<<script" in extract(RawDocument(mail.encode(), "mail.eml"), ExtractionSettings()).text
