"""Fields of a row as Chroma, LanceDB, pgvector, LangChain and LlamaIndex name them, read under limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, get_args
from uuid import UUID

import pydantic_core

from parquetry.errors import BrokenDocument
from parquetry.extract.builder import normalise, one_line
from parquetry.importing.chunk import DocumentFacts, FieldNames, ImportedChunk, RejectedRow
from parquetry.model import Access, PartKind
from parquetry.sources.uploads.identity import checked_name
from parquetry.sources.uploads.manifest import checked_access, checked_metadata

IDS = ("id", "chunk_id", "ids", "_id", "id_", "node_id", "uuid")
TEXTS = ("text", "document", "documents", "page_content", "content", "chunk")
VECTORS = ("vector", "embedding", "embeddings", "vectors")
_METADATA = ("metadata", "metadatas", "metadata_", "cmetadata", "meta", "payload")
_DOCUMENTS = (
    "path",
    "file_path",
    "document_id",
    "doc_id",
    "ref_doc_id",
    "url",
    "uri",
    "source",
    "filename",
    "file_name",
)
"""fields that name the document of a chunk, the best first"""
_PAGES = ("page", "page_label", "page_number")
_OWN = ("visibility", "org_id", "user_id", "tags")
"""fields that say who may see a document"""
_USED = frozenset(
    {
        *IDS, *TEXTS, *VECTORS, *_METADATA, *_OWN, *_PAGES,
        "document_id", "doc_id", "ref_doc_id", "path", "uri", "filename", "title", "media_type", "modified_at",
        "chunk_index", "start", "end", "kind", "headings", "tokens", "namespace", "embedder", "text_hash",
        "class_name", "relationships", "text_template", "metadata_template", "metadata_separator",
        "metadata_seperator", "excluded_embed_metadata_keys", "excluded_llm_metadata_keys", "start_char_idx",
        "end_char_idx", "mimetype", "text_resource", "image_resource", "audio_resource", "video_resource",
        "_node_content", "_node_type", "collection_id", "uris", "_distance",
    }
)  # fmt: skip
"""fields at the top of a row that are no metadata of a document"""
_PLACED = frozenset(
    {"_node_content", "_node_type", "document_id", "doc_id", "ref_doc_id", "start_index", "chunk_index", *_PAGES}
)
"""fields of metadata that concern the chunk or its store, and not the document"""
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,80}/[a-z0-9][a-z0-9.+-]{0,80}")
_OWN_TYPES = "application/vnd.parquetry."
_MOST_TEXT = 1_000_000
"""characters of a chunk"""
_MOST_HEADINGS = 32
_MOST_HEADING = 1000
"""characters of a heading"""
_LARGEST = 2**31 - 1
_Row = Mapping[str, Any]


class RowReader:
    """Reads the rows of a dump, without their vectors.

    Args:
        names: names of fields, where they are not the usual ones.
        access: access of all documents, whatever the rows say; None to follow the rows.
    """

    def __init__(self, names: FieldNames, access: Access | None) -> None:
        self._names = names
        self._access = access

    def chunk(self, row: _Row) -> ImportedChunk:
        """Return the chunk of a row.

        Raises:
            RejectedRow: it cannot be imported.
        """
        try:
            return self._chunk(row)
        except BrokenDocument as error:
            raise RejectedRow(error.reason, error.detail) from error

    def vector(self, row: _Row) -> Any:
        """Return the value of the field with the vector; None without one."""
        return _first(row, (self._names.vector,) if self._names.vector else VECTORS)

    def _chunk(self, row: _Row) -> ImportedChunk:
        metadata = _metadata(row)
        node = _node(metadata)
        text = self._text(row, node)
        identity = _word(_first(row, (self._names.id,) if self._names.id else IDS))
        path, document_id = self._document(row, metadata, identity)
        kind, page = _page(row, metadata)
        audience = _audience(row, metadata)
        placed = _PLACED if audience is row else _PLACED.union(_OWN)
        own = {key: value for key, value in metadata.items() if key not in placed or _is_label(key, value)}
        own |= {key: value for key, value in row.items() if key not in _USED and value is not None}
        facts = DocumentFacts(
            filename=_name(_either(row, metadata, "filename", "file_name")) or PurePosixPath(path).name or path,
            title=_title(_either(row, metadata, "title")),
            uri=_uri(_either(row, metadata, "uri", "url", "source")),
            media_type=_media_type(_either(row, metadata, "media_type", "file_type")),
            modified_at=_moment(row.get("modified_at")),
            access=self._access or _access(audience),
            metadata=checked_metadata(_plain(own)),
        )
        return ImportedChunk(
            id=identity or "",
            path=path,
            document_id=document_id,
            text=text,
            start=_number(_either({**node, **row}, metadata, "start", "start_char_idx", "start_index")),
            index=_number(_either(row, metadata, "chunk_index")),
            kind=kind,
            page=page,
            headings=_headings(row),
            tokens=_number(row.get("tokens")),
            facts=facts,
        )

    def _text(self, row: _Row, node: _Row) -> str:
        found = _first(row, (self._names.text,) if self._names.text else TEXTS)
        if found is None and self._names.text is None:
            found = _first(row, ("text_resource.text",)) or _first(node, ("text", "text_resource.text"))
        if found is None:
            raise RejectedRow("no-text", "the row has no text; --text-field names its field")
        if not isinstance(found, str):
            raise RejectedRow("no-text", f"its text is {_kind(found)}, not text")
        if len(found) > _MOST_TEXT:
            raise RejectedRow("too-large", f"its text has {len(found):,} characters; {_MOST_TEXT:,} are possible")
        text = normalise(found, keep_layout=True)
        if not text.strip():
            raise RejectedRow("no-text", "its text is blank")
        return text

    def _document(self, row: _Row, metadata: _Row, identity: str | None) -> tuple[str, str | None]:
        """Return the path of the document of a chunk, and its id in the corpus that the row was exported from."""
        if self._names.document:
            named = _word(_value(row, self._names.document))
            if named is None:
                raise RejectedRow("no-document", f"the field {self._names.document!r} names no document")
            return checked_name(named), None
        if self._names.document is None:
            path = _word(_either(row, metadata, *_DOCUMENTS)) or _related(row)
            if path is not None:
                # Pages of one file are documents of LlamaIndex; only an export of a corpus names whole ones.
                own = "namespace" in row and "source" in row
                return checked_name(path), _word(row.get("document_id")) if own else None
        if identity is None:
            raise RejectedRow("no-id", "the row names neither itself nor its document; --id-field names the field")
        return checked_name(identity), None


def rows_of(value: Any) -> Iterator[Any]:
    """Yield the rows of a line of JSON: itself, or those of the columns that Chroma's `get` returns."""
    ids = value.get("ids") if isinstance(value, dict) else None
    if not isinstance(ids, list):
        yield value
        return
    columns = {name: value[name] for name in ("ids", "documents", "embeddings", "metadatas") if value.get(name)}
    for name, column in columns.items():
        if not isinstance(column, list) or len(column) != len(ids):
            yield RejectedRow("not-a-row", f"{name!r} is not as long as 'ids'")
            return
    yield from (dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True))


def _value(row: Any, name: str) -> Any:
    """Return a field of a row; a dot leads into a nested one."""
    if isinstance(row, Mapping) and name in row:
        return row[name]
    first, dot, rest = name.partition(".")
    if not dot or not isinstance(row, Mapping):
        return None
    inner = row.get(first)
    return _value(_object(inner) if isinstance(inner, str) else inner, rest)


def _first(row: _Row, names: Sequence[str]) -> Any:
    return next((found for name in names if (found := _value(row, name)) is not None), None)


def _either(row: _Row, metadata: _Row, *names: str) -> Any:
    """Return the first of some fields that is there, in the row or in its metadata; `None` as text counts as absent."""
    for name in names:
        for place in (row, metadata):
            if (found := place.get(name)) not in (None, "", "None"):
                return found
    return None


def _object(text: str) -> dict[str, Any]:
    """Return a JSON object; empty for any other text."""
    try:
        found = pydantic_core.from_json(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _list(text: str) -> Any:
    """Return the list of a JSON text; the text itself if it is none."""
    try:
        return pydantic_core.from_json(text)
    except ValueError:
        return text


def _metadata(row: _Row) -> dict[str, Any]:
    found = _first(row, _METADATA)
    if isinstance(found, str):
        return _object(found)
    if isinstance(found, list):
        # A map of Arrow.
        return {str(pair[0]): pair[1] for pair in found if isinstance(pair, tuple) and len(pair) == 2}
    return dict(found) if isinstance(found, Mapping) else {}


def _node(metadata: _Row) -> dict[str, Any]:
    """Return the node that LlamaIndex keeps in metadata; empty without one."""
    content = metadata.get("_node_content")
    return _object(content) if isinstance(content, str) else {}


def _related(row: _Row) -> str | None:
    """Return the id of the source document of a node of LlamaIndex."""
    relations = row.get("relationships")
    found = relations.get("1") if isinstance(relations, Mapping) else None
    return _word(found.get("node_id")) if isinstance(found, Mapping) else None


def _word(value: Any) -> str | None:
    """Return the value of an identifying field as text; None if it is empty."""
    if isinstance(value, bool) or not isinstance(value, str | int | UUID):
        return None
    return str(value).strip() or None


def _name(value: Any) -> str | None:
    return checked_name(value) if isinstance(value, str) and value.strip() else None


def _title(value: Any) -> str | None:
    return one_line(normalise(value))[:_MOST_HEADING] or None if isinstance(value, str) else None


def _uri(value: Any) -> str | None:
    return checked_name(value) if isinstance(value, str) and re.match(r"[a-z][a-z0-9+.-]{1,20}://", value) else None


def _media_type(value: Any) -> str:
    if not isinstance(value, str) or not _MEDIA_TYPE.fullmatch(value) or value.startswith(_OWN_TYPES):
        return "text/plain"
    return value


def _number(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST else None


def _page(row: _Row, metadata: _Row) -> tuple[PartKind, int | None]:
    """Return the unit and the number of the page of a chunk."""
    kind = next((each for each in get_args(PartKind) if each == row.get("kind")), None)
    if kind == "document":
        return kind, None
    page = _page_number(_either(row, metadata, *_PAGES))
    return (kind or "page", page) if page else ("document", None)


def _page_number(value: Any) -> int | None:
    return _number(int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) else value)


def _is_label(key: str, value: Any) -> bool:
    """True for the label of a page that is no number: it is kept as metadata."""
    return key in _PAGES and value not in (None, "") and _page_number(value) is None


def _headings(row: _Row) -> tuple[str, ...]:
    found = row.get("headings")
    if not isinstance(found, list):
        return ()
    titles = (one_line(normalise(each))[:_MOST_HEADING] for each in found[:_MOST_HEADINGS] if isinstance(each, str))
    return tuple(filter(None, titles))


def _moment(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(found, datetime):
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _audience(row: _Row, metadata: _Row) -> _Row:
    """Return the fields that say who may see a document: the row's, or those of its metadata.

    Stores that keep an id, a text, a vector and metadata have them there. A visibility marks them as meant: names of
    users and tags alone may have any meaning in the metadata of other programs.
    """
    return metadata if metadata.get("visibility") and not any(row.get(name) for name in _OWN) else row


def _access(row: _Row) -> Access | None:
    """Return the audience that some fields state; None if they state none.

    Raises:
        RejectedRow: it states one that cannot be.
    """
    if not any(row.get(name) for name in _OWN):
        return None
    tags = row.get("tags") or ()
    if isinstance(tags, str) and tags.startswith("["):
        tags = _list(tags)
    texts = [row.get(name) for name in ("visibility", "org_id", "user_id")]
    if isinstance(tags, str) or not isinstance(tags, Sequence) or not all(isinstance(tag, str) for tag in tags):
        raise RejectedRow("bad-access", "its tags are no list of texts")
    if not all(text is None or isinstance(text, str) for text in texts):
        raise RejectedRow("bad-access", "visibility, org_id and user_id are texts")
    visibility, org_id, user_id = texts
    return checked_access(Access(visibility or "public", org_id or None, user_id or None, tuple(tags)))


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a value of Arrow or JSON as one of JSON."""
    if depth > _MOST_HEADINGS:
        raise RejectedRow("bad-metadata", "its metadata is nested too deep")
    match value:
        case Mapping():
            return {str(key): _plain(each, depth + 1) for key, each in value.items() if each is not None}
        case list() | tuple():
            return [_plain(each, depth + 1) for each in value]
        case datetime() | date():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case bytes():
            raise RejectedRow("bad-metadata", "its metadata holds bytes")
        case _:
            return value


def _kind(value: Any) -> str:
    """Return the name of the kind of a value, for a message."""
    names = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")


def facts_text(facts: DocumentFacts) -> str:
    """Return facts as JSON text."""
    return json.dumps(facts.as_json(), ensure_ascii=False, separators=(",", ":"))
