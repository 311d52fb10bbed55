"""The list of the documents that were read worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.output import print_json, print_table
from parquetry.serving.search.losses import losses_of, share_of
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
            [
                (row["path"], share_of(row["quality"]["known_loss"]), "; ".join(losses_of(row["quality"])))
                for row in bad
            ],
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
