"""Extraction fidelity, token by token, on development sets that include their expected text.

    python -m benchmarks.fidelity CORPORA_FOLDER

A token is a run of letters and digits, or one ideograph, in lower case. Recall is the share of expected tokens found,
precision the share of our tokens that are expected (both count repetitions), order the share of the common tokens that
are in the same order. The expected text is another program's output or written by a person: the last percent is
often a matter of taste. Our Markdown signs and repeated table headers do not count against us; link targets do.
"""

from __future__ import annotations

import argparse
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions, write_result
from benchmarks.fidelity_sets import SETS, Pair, plain_markdown
from parquetry.errors import DocumentError
from parquetry.extract import registry
from parquetry.model import Extraction, RawDocument
from parquetry.settings.extraction import ExtractionSettings

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_LONGEST_COMPARED = 20_000
"""maximum number of tokens per side for comparing order; matching takes quadratic time"""
PACKAGES = ("parquetry", "pypdfium2", "pypdf", "mammoth", "trafilatura", "python-pptx", "python-calamine", "rapidocr")


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Fidelity of one document."""

    name: str
    expected: int
    """number of expected tokens"""
    found: int
    """number of our tokens"""
    recall: float
    precision: float
    order: float
    refused: str | None
    """reason for rejection; None if the document was extracted"""
    missing: tuple[str, ...]
    """expected tokens not found, most frequent first; at most 20"""
    surplus: tuple[str, ...]
    """our tokens that were not expected, most frequent first; at most 20"""


def compare(name: str, expected: str, found: str, refused: str | None = None) -> Fidelity:
    """Compare two texts by their tokens."""
    wanted, ours = tokens(expected), tokens(found)
    missing, surplus = Counter(wanted) - Counter(ours), Counter(ours) - Counter(wanted)
    shared = len(wanted) - missing.total()
    first, second = wanted[:_LONGEST_COMPARED], ours[:_LONGEST_COMPARED]
    in_order = sum(block.size for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks())
    return Fidelity(
        name,
        len(wanted),
        len(ours),
        recall=round(shared / len(wanted), 4) if wanted else 1.0,
        precision=round(shared / len(ours), 4) if ours else 1.0,
        order=round(in_order / max(1, min(shared, len(first), len(second))), 4) if shared else 1.0,
        refused=refused,
        missing=tuple(token for token, _ in missing.most_common(20)),
        surplus=tuple(token for token, _ in surplus.most_common(20)),
    )


def tokens(text: str) -> list[str]:
    """Return the words of a text, with characters normalised."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).lower())


def of_pair(pair: Pair, settings: ExtractionSettings) -> Fidelity:
    """Extract a document and compare."""
    try:
        extraction = registry.extract(RawDocument(pair.content, pair.filename), settings)
    except DocumentError as error:
        return compare(pair.name, pair.expected, "", str(error))
    return compare(pair.name, pair.expected, readable(extraction))


def readable(extraction: Extraction) -> str:
    """Return an extraction as plain text: without Markdown signs, and with each table header only once."""
    if all(part.format in ("text", "code") for part in extraction.parts):
        return extraction.text
    lines: list[str] = []
    head: str | None = None
    source = extraction.text.split("\n")
    for line, following in zip(source, [*source[1:], ""], strict=True):
        if line and not line.startswith("|"):
            head = None
        if following.startswith("| ---"):
            if line == head:
                line = following
            else:
                head = line
        lines.append(line)
    return plain_markdown("\n".join(lines))


def total(rows: Sequence[Fidelity]) -> dict[str, Any]:
    """Return means over documents, and recall over all tokens of the set."""
    expected = sum(row.expected for row in rows)
    count = max(1, len(rows))
    return {
        "documents": len(rows),
        "refused": sum(row.refused is not None for row in rows),
        "tokens": expected,
        "recall_of_tokens": round(sum(row.recall * row.expected for row in rows) / max(1, expected), 4),
        "recall": round(sum(row.recall for row in rows) / count, 4),
        "precision": round(sum(row.precision for row in rows) / count, 4),
        "order": round(sum(row.order for row in rows) / count, 4),
    }


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity")
    parser.add_argument("corpora", type=Path, help="folder that holds the sets, each in a folder of its name")
    parser.add_argument("--set", action="append", choices=sorted(SETS), help="only this one; may be repeated")
    parser.add_argument("--below", type=float, default=0.99, help="show documents with a recall below this")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    settings = ExtractionSettings()
    summary: dict[str, Any] = {}
    files: dict[str, list[dict[str, Any]]] = {}
    for name in options.set or SETS:
        rows = [of_pair(pair, settings) for pair in SETS[name](options.corpora)]
        summary[name] = total(rows)
        files[name] = [_kept(row) for row in rows]
        _show(name, summary[name], rows, options.below)
    result = {"conditions": conditions(PACKAGES), "summary": summary, "files": files}
    print(f"written to {write_result('fidelity', result, options.results)}")
    return result


def _kept(row: Fidelity) -> dict[str, Any]:
    """Return the figures only: the words belong to third-party sets and are not stored."""
    return {name: value for name, value in asdict(row).items() if name not in ("missing", "surplus")}


def _show(name: str, summary: dict[str, Any], rows: Sequence[Fidelity], below: float) -> None:
    print(
        f"{name}: {summary['documents']} documents, {summary['tokens']} tokens: "
        f"recall {summary['recall_of_tokens']:.4f} (mean {summary['recall']:.4f}), "
        f"precision {summary['precision']:.4f}, order {summary['order']:.4f}"
    )
    for row in sorted(rows, key=lambda row: row.recall):
        if row.recall < below:
            why = row.refused or f"missing {' '.join(row.missing[:10])}"
            print(f"   {row.recall:.3f} {row.precision:.3f} {row.order:.3f} {row.name}: {why}")


if __name__ == "__main__":
    main()
