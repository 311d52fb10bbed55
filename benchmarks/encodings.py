"""Texts of many languages in many encodings, read without any hint; charset-normalizer and chardet beside.

    python -m benchmarks.encodings FOLDER

The folder holds a UTF-8 text per language, `pl.txt`, with a paragraph on each line. A sample is a run of paragraphs
that the encoding can write. It counts as right if every character is: the name of the encoding does not matter.
Languages are in two halves, by turns; the first is for tuning.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, write_result
from parquetry.errors import BrokenDocument
from parquetry.extract.encoding import decode

PACKAGES = ("parquetry", "charset-normalizer", "chardet")
LENGTHS = (80, 400, 2000)
"""characters of a sample, at least"""
SAMPLES = 4
"""samples of each length, language and encoding"""
_LATIN = "cp1252 iso8859_15 cp850 cp437 mac_roman cp500"
_EASTERN = "cp1250 iso8859_2 cp852 mac_latin2"
_CYRILLIC = "cp1251 koi8_r koi8_u iso8859_5 cp866 mac_cyrillic"
ENCODINGS: dict[str, str] = {
    **dict.fromkeys(("de", "fr", "es", "it", "pt", "nl", "sv", "da", "fi", "nb", "ca"), _LATIN),
    **dict.fromkeys(("cs", "pl", "hu", "ro", "sk", "sl", "hr"), _EASTERN),
    **dict.fromkeys(("ru", "uk", "bg", "sr", "be"), _CYRILLIC),
    **dict.fromkeys(("lt", "lv", "et"), "cp1257 iso8859_13 iso8859_4 cp775"),
    "el": "cp1253 iso8859_7 cp737 mac_greek",
    "tr": "cp1254 iso8859_9 cp857 mac_turkish",
    "he": "cp1255 iso8859_8 cp862",
    "ar": "cp1256 iso8859_6 cp720",
    "th": "cp874",
    "vi": "cp1258",
    "ja": "cp932 euc_jp iso2022_jp",
    "zh_CN": "gb18030 gb2312 hz",
    "zh_TW": "big5",
    "ko": "cp949 iso2022_kr johab",
}
"""language -> encodings that its texts were written in"""


@dataclass(frozen=True, slots=True)
class Sample:
    """A text in one encoding."""

    language: str
    encoding: str
    length: int
    half: str
    """`tuning` or `test`"""
    text: str
    content: bytes


def ours(content: bytes) -> str:
    try:
        return decode(content)[0]
    except BrokenDocument as error:
        return f"refused: {error}"


def by_charset_normalizer(content: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(content).best()
    return "" if best is None else content.decode(best.encoding, "replace")


def by_chardet(content: bytes) -> str:
    import chardet

    # Its "supersets" move letters, as those of ISO 8859-2 in cp1250.
    found = chardet.detect(content, compat_names=False)["encoding"]
    return "" if found is None else content.decode(found, "replace")


READERS: dict[str, Callable[[bytes], str]] = {
    "parquetry": ours,
    "charset-normalizer": by_charset_normalizer,
    "chardet": by_chardet,
}


def samples(folder: Path) -> Iterator[Sample]:
    """Yield the samples of all languages that the folder has."""
    for number, language in enumerate(sorted(ENCODINGS)):
        file = folder / f"{language}.txt"
        if not file.exists():
            continue
        lines = file.read_text("utf-8").splitlines()
        half = "test" if number % 2 else "tuning"
        for encoding in ENCODINGS[language].split():
            fitting = [line for line in map(_plain(encoding), lines) if line]
            for length in LENGTHS:
                for turn in range(SAMPLES):
                    text = _run(fitting, length, f"{language} {encoding} {length} {turn}")
                    if not text.isascii():
                        yield Sample(language, encoding, length, half, text, text.encode(encoding))


def _plain(encoding: str) -> Callable[[str], str]:
    """Return a function that gives a line as the encoding can write it; nothing if it cannot."""
    signs = {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "…": "...", "→": ">"}
    letters = {"ș": "ş", "ț": "ţ", "Ș": "Ş", "Ț": "Ţ", "\u00a0": " ", "\u200e": "", "\u200f": ""}
    swaps = str.maketrans(signs | letters)

    def line(text: str) -> str:
        for candidate in (text, text.translate(swaps)):
            try:
                if candidate.encode(encoding).decode(encoding) == candidate:
                    return candidate
            except UnicodeError:
                continue
        return ""

    return line


def _run(lines: Sequence[str], length: int, seed: str) -> str:
    """Return consecutive lines of at least `length` characters, from a place that the seed decides."""
    place = int(hashlib.sha256(seed.encode()).hexdigest()[:8], 16)
    kept: list[str] = []
    for step in range(len(lines)):
        kept.append(lines[(place + step) % len(lines)])
        if sum(map(len, kept)) >= length:
            break
    return "\n".join(kept) + "\n"


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encodings")
    parser.add_argument("folder", type=Path, help="folder with a text per language")
    parser.add_argument("--half", choices=("tuning", "test"), help="only this half")
    parser.add_argument("--wrong", action="store_true", help="list what is read wrongly")
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="only this one; may be repeated")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--name", default="encodings", help="name of the file of results")
    options = parser.parse_args(arguments)
    tried = [sample for sample in samples(options.folder) if options.half in (None, sample.half)]
    summary: dict[str, Any] = {}
    groups: dict[str, dict[str, dict[str, int]]] = {}
    for name in options.reader or READERS:
        start = time.process_time()
        right = [READERS[name](sample.content) == sample.text for sample in tried]
        summary[name] = _summary(tried, right) | {"processor_seconds": round(time.process_time() - start, 1)}
        groups[name] = _by_encoding(tried, right)
        print(name, summary[name])
        if options.wrong:
            for key, counts in groups[name].items():
                if counts["right"] < counts["samples"]:
                    print(f"   {key}: {counts['right']} of {counts['samples']}")
    result = {"conditions": conditions(PACKAGES), "summary": summary, "by_encoding": groups}
    print(f"written to {write_result(options.name, result, options.results)}")
    return result


def _summary(tried: Sequence[Sample], right: Sequence[bool]) -> dict[str, Any]:
    counts: dict[str, list[bool]] = defaultdict(list)
    for sample, good in zip(tried, right, strict=True):
        for key in (sample.half, f"{sample.length} characters"):
            counts[key].append(good)
    return {"samples": len(tried), "right": sum(right)} | {
        key: f"{sum(good)} of {len(good)}" for key, good in sorted(counts.items())
    }


def _by_encoding(tried: Sequence[Sample], right: Sequence[bool]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for sample, good in zip(tried, right, strict=True):
        row = counts.setdefault(f"{sample.language} {sample.encoding}", {"samples": 0, "right": 0})
        row["samples"] += 1
        row["right"] += good
    return counts


if __name__ == "__main__":
    main()
