"""Pages of the documents of one version: a list read while runs publish has no gaps and no repetitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from parquetry.errors import FilesGaveWay, PagesGone, SettingsError
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import Settings
from parquetry.storage.database import Connection
from parquetry.storage.lake.snapshot_views import add_present
from parquetry.storage.search.document_list import (
    count_documents,
    count_still_visible,
    page_of_documents,
    still_visible,
)
from parquetry.storage.search.filters import Filters

MOST_DOCUMENTS = 1_000
"""maximum number of documents of a page"""
_TOKEN = re.compile(r"v(\d{1,18})-(\d{1,18})")


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Consecutive documents of a list."""

    documents: tuple[dict[str, Any], ...]
    """columns of the view `documents`, oldest first"""
    total: int
    """number of documents of the whole list"""
    offset: int
    """0-based place of the first of these in the list"""
    limit: int
    version: int
    """version of the corpus that the whole list is read from"""
    next: str | None
    """token of the page after this one; None for the last page"""


def read_page(
    settings: Settings,
    reader: Reader,
    filters: Filters,
    *,
    limit: int = 100,
    offset: int = 0,
    token: str | None = None,
) -> DocumentPage:
    """Read one page of documents.

    Without a token, the page is of the reader's version. A token names the version of the page before, so a list that
    is read to its end by tokens is that of one version, whatever is published meanwhile. Documents that were removed or
    hidden from the caller since are left out: a token can name any version.

    Args:
        settings: settings of the corpus.
        reader: the current reader.
        filters: the caller and the conditions; those on metadata and `where` are not applied.
        limit: maximum number of documents, 1 to 1,000.
        offset: number of documents to skip; ignored with a token.
        token: `next` of the page before.

    Raises:
        PagesGone: the token's version cannot be read any more.
        SettingsError: the token is not one of these, or a number is out of range.
        StorageError: the corpus cannot be read.
    """
    if not 1 <= limit <= MOST_DOCUMENTS or offset < 0:
        raise SettingsError(
            f"limit {limit} and offset {offset}: the limit of a page is 1 to {MOST_DOCUMENTS}, its offset 0 or more"
        )
    if token is None:
        return _of_index(reader, filters, limit, offset)
    version, offset = _parsed(token)
    if version == reader.snapshot.version:
        return _of_index(reader, filters, limit, offset)
    with _pinned(settings, version) as earlier:
        # An index of an earlier version would have to be built; the tables are there.
        connection = earlier.tables
        add_present(connection, reader.snapshot)
        found = _page(connection, version, filters, limit, offset)
        return replace(
            found,
            documents=tuple(still_visible(connection, filters, found.documents)),
            total=count_still_visible(connection, filters),
        )


def _of_index(reader: Reader, filters: Filters, limit: int, offset: int) -> DocumentPage:
    with closing(reader.index.session()) as session:
        return _page(session, reader.snapshot.version, filters, limit, offset)


def _parsed(token: str) -> tuple[int, int]:
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise SettingsError(f"{token[:40]!r} is no token of a page; pass on the one that came with the page before")
    return int(found[1]), int(found[2])


@contextmanager
def _pinned(settings: Settings, version: int) -> Iterator[Reader]:
    try:
        with Reader(settings, version) as reader:
            yield reader
    except (SettingsError, FilesGaveWay) as error:
        raise PagesGone(
            f"these pages are of version {version}, which cannot be read any more; read the list again from its start"
        ) from error


def _page(connection: Connection, version: int, filters: Filters, limit: int, offset: int) -> DocumentPage:
    total = count_documents(connection, filters).documents
    documents = tuple(page_of_documents(connection, filters, limit, offset))
    end = offset + len(documents)
    following = f"v{version}-{end}" if documents and end < total else None
    return DocumentPage(documents, total, offset, limit, version, following)
