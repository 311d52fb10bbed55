"""The tools that read: whole documents in pages of lines, lists of documents, and `fetch` in ChatGPT's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parquetry.plural import counted
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.mcp import arguments as forms
from parquetry.serving.mcp.outcome import ToolOutcome, as_text_too, failure
from parquetry.serving.mcp.searching import title_and_url
from parquetry.serving.mcp.visit import Visit
from parquetry.serving.mcp.wording import DATA, MOST_CHARACTERS, named, numbered
from parquetry.serving.search.pages import read_page
from parquetry.serving.service import documents as shown
from parquetry.serving.service.grounding import as_data, name_as_data
from parquetry.storage.search.filters import Filters


def read_document(visit: Visit, asked: forms.ReadArguments) -> ToolOutcome:
    """Return lines of a document."""
    with visit.follower.reader() as reader:
        if asked.id is not None:
            # An id is that of one document, wherever it is.
            asked_for = None if asked.namespace is None else visit.namespace(asked.namespace)
            row = shown.document(reader, visit.principal, asked.id, asked_for)
        else:
            row = shown.document_at(reader, visit.principal, asked.path or "", visit.namespace(asked.namespace))
        text = shown.text_of(reader, row)
    if not text:
        return failure(_without_text(row))
    lines = as_data(text).split("\n")
    if asked.from_line > len(lines):
        return failure(f"{row['path']} has {counted(len(lines), 'line')}; there is no line {asked.from_line}")
    first = asked.from_line - 1
    chosen = _within(lines[first : first + asked.lines])
    following = first + len(chosen) + 1 if first + len(chosen) < len(lines) else None
    structured = {
        "id": row["document_id"],
        "path": row["path"],
        "title": row["title"],
        "first_line": first + 1,
        "last_line": first + len(chosen),
        "total_lines": len(lines),
        "next_line": following,
    }
    return ToolOutcome(_page(row, chosen, structured), structured)


def _without_text(row: Mapping[str, Any]) -> str:
    why = f": {row['error']}" if row["error"] else ""
    return f"{row['path']} has no text ({row['status']}{why})"


def _within(lines: list[str]) -> list[str]:
    """Return as many lines as fit into an answer; one that does not fit alone is cut, and says so."""
    chosen: list[str] = []
    left = MOST_CHARACTERS
    for line in lines:
        if len(line) > left:
            break
        chosen.append(line)
        left -= len(line) + 1
    if not chosen:
        chosen.append(f"{lines[0][:MOST_CHARACTERS]} … ({len(lines[0]) - MOST_CHARACTERS:,} more characters)")
    return chosen


def _page(row: Mapping[str, Any], lines: list[str], about: Mapping[str, Any]) -> str:
    head = named(row["path"], row["title"] if row["title"] != row["path"] else None, f"id {row['document_id']}")
    first, last, total = about["first_line"], about["last_line"], about["total_lines"]
    part = f"Lines {first} to {last} of {total}"
    told = f"{head}. {part}, each behind its number and |. They are quoted from the document. {DATA}"
    following = about["next_line"]
    end = "That is the end of the document." if following is None else f"To read on, pass from_line={following}."
    return f"{told}\n\n{numbered(lines, first)}\n\n{end}"


def list_documents(visit: Visit, asked: forms.ListDocuments) -> ToolOutcome:
    """Return a page of the documents that the caller sees, oldest first."""
    asked_for = Filters(filename=asked.filename, tags=tuple(asked.tags))
    filters = filters_for(visit.principal, visit.namespace(asked.namespace), asked_for)
    with visit.follower.reader() as reader:
        page = read_page(visit.settings, reader, filters, limit=asked.limit, token=asked.page)
    items = [_item(row) for row in page.documents]
    structured = {"documents": items, "total": page.total, "next": page.next, "version": page.version}
    if not items:
        return ToolOutcome("There are no such documents.", structured)
    told = [
        f"{counted(page.total, 'document')}, {page.offset + 1} to {page.offset + len(items)} of them, oldest first."
    ]
    told += [_line(item) for item in items]
    if page.next is not None:
        told.append(f'For the next ones, pass page="{page.next}".')
    return ToolOutcome("\n".join(told), structured)


def _item(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": row["document_id"],
        "path": row["path"],
        "title": row["title"],
        "namespace": row["namespace"],
        "source": shown.origin_of(row),
        "url": row["uri"],
        "media_type": row["media_type"],
        "size": row["size"] or 0,
        "chunks": row["chunks"] or 0,
        "status": row["status"],
        "tags": list(row["tags"] or ()),
        "indexed_at": row["indexed_at"].isoformat(),
    }


def _line(item: Mapping[str, Any]) -> str:
    title = f" {name_as_data(item['title'])!r}" if item["title"] and item["title"] != item["path"] else ""
    state = "" if item["status"] == "indexed" else f", {item['status']}"
    return f"- {name_as_data(item['path'])}{title} (id {item['id']}, {item['media_type'] or 'unknown type'}{state})"


def fetch(visit: Visit, asked: forms.Fetch) -> ToolOutcome:
    """Return a document with its text, in the form that ChatGPT expects."""
    with visit.follower.reader() as reader:
        row = shown.document(reader, visit.principal, asked.id)
        text = shown.text_of(reader, row)
    if not text:
        return failure(_without_text(row))
    metadata = {
        **shown.shown_metadata(visit.settings, row),
        "filename": row["filename"],
        "source": shown.origin_of(row),
        "media_type": row["media_type"],
    }
    return as_text_too({"id": row["document_id"], **title_and_url(row), "text": as_data(text), "metadata": metadata})
