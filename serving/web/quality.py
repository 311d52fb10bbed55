"""Lists of documents that may need a person: read badly, or there more than once; and questions that found nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from parquetry.plural import counted
from parquetry.serving.search.losses import losses_of
from parquetry.serving.web.admin import ShownEvent, shown_event
from parquetry.serving.web.documents import ListedDocument, item_of
from parquetry.serving.web.results import WEAK


@dataclass(frozen=True, slots=True)
class QualityList:
    """A list that the page offers."""

    key: str
    """in URLs"""
    name: str
    explanation: str
    """the common trait of its documents, and what to do"""


UNANSWERED = QualityList(
    "unanswered",
    "Questions without an answer",
    "Questions of which no result fitted by 30 % or more: documents on them may be missing, or use other words.",
)
LISTS = (
    QualityList(
        "incomplete",
        "Incomplete",
        "Pages that could not be read whole, and text above the limit. Add the "
        "document again from a better file, or raise the limit that its report names.",
    ),
    QualityList(
        "little-text",
        "Little text",
        "Fewer than 200 characters on a usual page, or hardly any text for the size of the file. Is it a scan, or a "
        "picture of a text?",
    ),
    QualityList(
        "garbled",
        "Garbled text",
        "Characters that a font or an encoding leaves unknown. Searches do not find the words in which they stand.",
    ),
    QualityList(
        "scanned",
        "No text layer",
        "Pages that are pictures: read by text recognition, or without any text. Those that were recognised with the "
        "least confidence come first.",
    ),
    QualityList(
        "duplicates",
        "Duplicates",
        "Documents with the same bytes. Searches show one result for the same text, and name the other places.",
    ),
    QualityList(
        "near-duplicates",
        "Near-duplicates",
        "Documents that share 70 % or more of their word sequences: versions of one text, perhaps. Keep the newest.",
    ),
)


@dataclass(frozen=True, slots=True)
class QualityItem:
    """A document in a list, with the reasons."""

    document: ListedDocument
    why: str


@dataclass(frozen=True, slots=True)
class QualityGroup:
    """Documents that are alike, or all documents of a list without groups."""

    name: str
    """empty for a list without groups"""
    items: tuple[QualityItem, ...]


def groups_of(key: str, found: Sequence[Mapping[str, Any]]) -> list[QualityGroup]:
    """Return the documents of a page of a list.

    Args:
        key: key of the list.
        found: rows of `parquetry.storage.analysis.lists`.
    """
    if not found:
        return []
    if key not in ("duplicates", "near-duplicates"):
        return [QualityGroup("", tuple(QualityItem(item_of(row), "; ".join(_reasons(key, row))) for row in found))]
    return [_alike(key, list(members)) for _, members in groupby(found, lambda row: row["together"])]


def _alike(key: str, members: Sequence[Mapping[str, Any]]) -> QualityGroup:
    items = []
    for row in members:
        share = row["near_share"]
        why = f"{share:.0%} the same as another" if key == "near-duplicates" and share is not None else ""
        items.append(QualityItem(item_of(row), why))
    return QualityGroup(f"{counted(members[0]['members'], 'document')} alike", tuple(items))


def _reasons(key: str, row: Mapping[str, Any]) -> Iterator[str]:
    pages = row["pages"]
    if key == "little-text":
        yield counted(row["characters"], "character") + (f" on {counted(pages, 'page')}" if pages else "")
        return
    if key == "scanned" and row["pages_without_text"]:
        yield f"{row['pages_without_text']} of {counted(pages, 'page')} without text"
    share = (row["unmapped"] or 0) / max(row["characters"], row["unmapped"] or 0, 1)
    yield from losses_of({**row, "unmapped_share": share})


def is_unanswered(event: Mapping[str, Any]) -> bool:
    """Return True for the audit event of a question, kept with its text, that found nothing that fits."""
    if event["event"] not in ("knowledge.retrieve", "knowledge.query") or not event["text"] or event["reason"]:
        return False
    score = event["top_score"]
    return not event["chunks"] or (score is not None and score < WEAK)


def unanswered(events: Sequence[Mapping[str, Any]]) -> list[tuple[ShownEvent, int]]:
    """Return questions without an answer, the newest first, each once, with the number of times that it was asked."""
    asked: dict[str, tuple[ShownEvent, int]] = {}
    for event in events:
        key = " ".join(str(event["text"]).lower().split())
        first, times = asked.get(key, (shown_event(event), 0))
        asked[key] = (first, times + 1)
    return list(asked.values())
