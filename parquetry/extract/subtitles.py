"""Subtitles (SubRip, WebVTT): what is spoken, in sections under their timecodes."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parquetry.errors import BrokenDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder, normalise
from parquetry.extract.encoding import decode, replaced
from parquetry.extract.media_types import SRT, VTT
from parquetry.model import Extraction, RawDocument, Scalar
from parquetry.timecodes import sections, timecode

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_TIMES = re.compile(
    r"[ \t]*(?:(\d{1,4}):)?(\d{1,2}):(\d{2})(?:[.,]\d{1,3})?[ \t]*-->[ \t]*(?:(\d{1,4}):)?(\d{1,2}):(\d{2})"
)
_NUMBER = re.compile(r"\s*\d{1,9}\s*")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?[ \t]+([^<>]{1,200})>")
_TAG = re.compile(r"</?[a-zA-Z\d][^<>]*>|\{\\[^{}]*\}")
"""tags of WebVTT and SubRip, times of single words, and positions (`{\\an8}`)"""
_LANGUAGE = re.compile(r"Language:[ \t]*([\w-]{1,35})")


@dataclass(slots=True)
class _Cue:
    start: int
    """seconds"""
    end: int
    """seconds"""
    lines: list[str]


class SubtitleExtractor(ListedExtractor):
    """Reads subtitles without their numbers and signs of layout."""

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        """Extract one file; the timecode of each half minute is a heading.

        Raises:
            BrokenDocument: `damaged`, no line states the time of a subtitle.
        """
        text, encoding = decode(document.content)
        head, cues = _read(normalise(text), media_type)
        metadata: dict[str, Scalar] = {"encoding": encoding}
        if cues:
            metadata["duration"] = timecode(max(cue.end for cue in cues))
        elif media_type == SRT:
            raise BrokenDocument(
                "damaged", "no line of it states the time of a subtitle: 00:00:01,000 --> 00:00:02,000"
            )
        if language := next(filter(None, map(_LANGUAGE.match, head[1:])), None):
            metadata["language"] = language[1]
        builder = TextBuilder("text")
        for start, words in sections(_spoken(cues)):
            builder.heading(2, timecode(start))
            builder.text(" ".join(words))
        return builder.build(
            title=head[0].removeprefix("WEBVTT").lstrip(" \t-") if head else None,
            metadata=metadata,
            media_type=media_type,
            extractor=self.id,
            warnings=replaced(document.content, text, encoding),
        )


def _read(text: str, media_type: str) -> tuple[list[str], list[_Cue]]:
    """Return the lines of the header of WebVTT, and the subtitles."""
    head: list[str] = []
    cues: list[_Cue] = []
    in_head = media_type == VTT
    for line in text.split("\n"):
        if times := _TIMES.match(line):
            if cues:
                _without_name(cues[-1].lines, media_type, last=False)
            hours, minutes, seconds, *ends = (int(each or 0) for each in times.groups())
            cues.append(_Cue(_seconds(hours, minutes, seconds), _seconds(*ends), []))
        elif cues:
            cues[-1].lines.append(line)
        elif in_head and line.strip():
            head.append(line)
        else:
            in_head = False
    if cues:
        _without_name(cues[-1].lines, media_type, last=True)
    return head, cues


def _seconds(hours: int, minutes: int, seconds: int) -> int:
    return hours * 3600 + minutes * 60 + seconds


def _without_name(lines: list[str], media_type: str, *, last: bool) -> None:
    """Remove what stands before the next subtitle and belongs to it: its number; in WebVTT all after a blank line."""
    if media_type == VTT:
        blank = next((at for at, line in enumerate(lines) if not line.strip()), len(lines))
        del lines[blank:]
    elif lines and not last and _NUMBER.fullmatch(lines[-1]):
        lines.pop()


def _spoken(cues: list[_Cue]) -> Iterator[tuple[float, str]]:
    """Yield the second and the words of each line; one that a subtitle repeats from the one before is left out."""
    last, speaker = "", ""
    for cue in cues:
        for line in cue.lines:
            words = " ".join(html.unescape(_TAG.sub("", line)).split())
            if not words or words == last:
                continue
            last = words
            voice = _VOICE.search(line)
            if voice and voice[1].strip() != speaker:
                speaker = voice[1].strip()
                words = f"{speaker}: {words}"
            yield cue.start, words
