"""The list of the documents that were read worst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.output import print_json, print_table
from parquetry.serving.search.service import Reader
from parquetry.storage.database import rows

_FACTS = (
    "known_loss", "pages", "pages_without_text", "pages_unread", "least_characters", "median_characters", "pages_ocr",
    "ocr_confidence", "unmapped", "unmapped_share", "tables", "cut", "language",
)  # fmt: skip
"""columns of the view `quality` that are not in `documents`, too"""


def print_worst(reader: Reader, found: Sequence[dict[str, Any]], most: int, *, as_json: bool) -> None:
    """Print the documents of which most is known to be missing or doubtful, and the reasons.

    Args:
        reader: reader of the corpus.
        found: documents to choose from: rows of the view `documents`.
        most: maximum number of documents.
        as_json: True to print one JSON object.
    """
    facts = {
        (row["namespace"], row["document_id"]): {name: row[name] for name in _FACTS}
        for row in rows(reader.tables, "FROM quality")
    }
    told = [{**row, "quality": facts[row["namespace"], row["document_id"]]} for row in found if row["revision"]]
    unknown = sum(row["quality"]["known_loss"] is None for row in told)
    unread = len(found) - len(told)
    bad = sorted(
        (row for row in told if row["quality"]["known_loss"]),
        key=lambda row: (-row["quality"]["known_loss"], row["path"], row["document_id"]),
    )[:most]
    if as_json:
        told_of = {"documents": bad, "unknown": unknown, "not_indexed": unread}
        print_json({"version": reader.snapshot.version, **told_of})
        return
    if bad:
        print_table(
            ("path", "known loss", "why"),
            [(row["path"], _percent(row["quality"]["known_loss"]), "; ".join(_why(row["quality"]))) for row in bad],
            width=120,
        )
    else:
        tell("No document is known to have lost anything.")
    if unknown:
        tell(
            f"{counted(unknown, 'document was', 'documents were')} read before this was recorded: "
            "`parquetry reindex --all` reads them again."
        )
    if unread:
        left = counted(unread, "document is", "documents are")
        tell(f"{left} not indexed: `parquetry documents --status failed` and `--status skipped`.")


def _why(quality: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a document; each takes part in `known_loss`."""
    pages, unread, by_ocr = quality["pages"], quality["pages_unread"], quality["pages_ocr"]
    if unread:
        yield f"{unread} of {counted(pages, 'page')} not fully read"
    if by_ocr and quality["ocr_confidence"] is not None:
        yield f"{counted(by_ocr, 'page')} by OCR, confidence {quality['ocr_confidence']:.2f}"
    if quality["unmapped"]:
        yield f"{counted(quality['unmapped'], 'character')} unmapped ({_percent(quality['unmapped_share'])})"
    if quality["cut"]:
        yield f"{counted(quality['cut'], 'character')} cut"


def _percent(share: float) -> str:
    return "< 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"
