"""Subtitles: words without numbers and tags, in sections under their timecodes."""

from __future__ import annotations

import pytest

from parquetry.chunking.chunker import Chunker
from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract import media_types as kinds
from parquetry.extract.detect import detect
from parquetry.extract.registry import extract
from parquetry.model import Extraction, RawDocument
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.sections import ExtractionSettings

SRT = """1
00:00:01,000 --> 00:00:04,000
<i>Welcome</i> to the kiln.

2
00:00:05,500 --> 00:00:09,000
{\\an8}Oak needs
nine weeks,

3
00:00:31,000 --> 00:00:33,000
- Ash?
- Only six.

4
01:02:03,000 --> 01:02:05,000
1984
"""
VTT = """WEBVTT - How a kiln dries
Kind: captions
Language: en-GB

STYLE
::cue { color: red }

NOTE made by hand

intro
00:01.000 --> 00:04.000 align:start position:0%
<v Ann Lee>Welcome &amp; hello<00:02.000><c> all.</c>

00:04.000 --> 00:06.000
Welcome &amp; hello all.
<v.loud Ann Lee>Sit down.

NOTE
not spoken

2
00:35.000 --> 00:40.000
<v Ben>Thanks.

last
00:00:41.000 --> 00:00:42.000
42
"""


def read(content: bytes | str, name: str) -> Extraction:
    content = content.encode() if isinstance(content, str) else content
    return extract(RawDocument(content, name), ExtractionSettings())


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_numbers_times_and_tags_are_left_out_and_timecodes_are_headings(line_end: str):
    extraction = read(SRT.replace("\n", line_end), "kiln.srt")
    assert extraction.text == (
        "## 0:01\n\nWelcome to the kiln. Oak needs nine weeks,\n\n## 0:31\n\n- Ash? - Only six.\n\n## 1:02:03\n\n1984"
    )
    assert [heading.title for heading in extraction.headings] == ["0:01", "0:31", "1:02:03"]
    assert extraction.metadata == {"encoding": "utf-8", "duration": "1:02:05"}
    assert (extraction.title, extraction.media_type) == (None, kinds.SRT)


def test_web_captions_name_their_speakers_once_and_repeat_no_line():
    extraction = read(VTT, "kiln.vtt")
    assert extraction.text == ("## 0:01\n\nAnn Lee: Welcome & hello all. Sit down.\n\n## 0:35\n\nBen: Thanks. 42")
    assert extraction.title == "How a kiln dries"
    assert extraction.metadata == {"encoding": "utf-8", "duration": "0:42", "language": "en-GB"}


def test_a_chunk_names_the_timecode_as_its_place():
    extraction = read(SRT, "kiln.srt")
    chunks = Chunker(ChunkingSettings(size=20, overlap=0), None).split(
        extraction.text, extraction.parts, extraction.headings
    )
    assert list(dict.fromkeys(chunk.headings for chunk in chunks)) == [("0:01",), ("0:31",), ("1:02:03",)]


def test_blank_lines_within_a_subtitle_are_no_end_and_missing_ones_no_loss():
    text = "1\n0:00:01,0 --> 0:00:02,0\none\n\ntwo\n2\n0:00:03,0 --> 0:00:04,0\nthree\n"
    assert read(text, "a.srt").text == "## 0:01\n\none two three"


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (SRT, "a.txt", kinds.SRT),
        (SRT.replace("\n", "\r\n"), "a", kinds.SRT),
        ("\ufeff" + VTT, "a", kinds.VTT),
        (VTT, "a.srt", kinds.VTT),
        ("WEBVTTX", "a.txt", kinds.PLAIN),
        ("1\n2\n", "a.txt", kinds.PLAIN),
        (SRT, "a.md", kinds.MARKDOWN),
    ],
)
def test_subtitles_are_known_by_their_content(content: str, name: str, kind: str):
    assert detect(content.encode(), name) == kind


def test_any_encoding_is_read():
    assert "Käse läuft über" in read(SRT.replace("Oak needs", "Käse läuft über").encode("cp1252"), "a.srt").text


def test_what_holds_no_subtitle_is_refused_with_a_reason():
    with pytest.raises(BrokenDocument, match="damaged: no line of it states the time of a subtitle"):
        read("just words\n", "a.srt")
    with pytest.raises(SkippedDocument, match="no-text"):
        read("WEBVTT\n\n", "a.vtt")
    with pytest.raises(SkippedDocument, match="empty"):
        read(b"", "a.srt")
