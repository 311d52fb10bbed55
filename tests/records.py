"""Records for tests: every field has a default, and a test sets the ones that it is about."""

from dataclasses import replace
from datetime import UTC, datetime

from parquetry import ids
from parquetry.model import Access, DocumentRow, Item
from parquetry.planning.fingerprint import Fingerprint, Fingerprints

THEN = datetime(2031, 3, 1, 9, 30, tzinfo=UTC)
NOW = datetime(2031, 3, 2, 9, 30, tzinfo=UTC)
SETTINGS = Fingerprint("ex1", "ch1", "em1")


def fingerprints(extraction="ex1", chunking="ch1", embedding="em1"):
    return Fingerprints(lambda media_type: extraction, chunking, embedding)


def content_hash(content):
    return ids.content_hash(content.encode())


def item(path="a.md", content="text of a", **fields):
    """Return a listed file; its change token follows its content."""
    base = Item(
        path=path,
        uri=f"file:///docs/{path}",
        size=len(content.encode()),
        etag=f"etag-{content}",
        modified_at=THEN,
        access=Access(),
    )
    return replace(base, **fields)


def row(path="a.md", content="text of a", *, source="docs", namespace="default", **fields):
    """Return the current row of a document indexed from such a file."""
    listed = item(path, content)
    identity = ids.document_id(namespace, source, path)
    base = DocumentRow(
        document_id=identity,
        namespace=namespace,
        source=source,
        path=path,
        uri=listed.uri,
        filename=path.rpartition("/")[2],
        title="A title",
        media_type="text/markdown",
        size=listed.size,
        etag=listed.etag,
        modified_at=listed.modified_at,
        content_hash=content_hash(content),
        revision=ids.revision(identity, "run-1"),
        sequence=1,
        removed=False,
        fingerprint=str(SETTINGS),
        status="indexed",
        error=None,
        attempts=0,
        transient=False,
        extractor="markdown/1",
        embedder="model@4",
        pages=0,
        characters=len(content),
        chunks=1,
        tokens=3,
        access=listed.access,
        metadata={"author": "Ada"},
        uploaded_by=None,
        created_at=THEN,
        indexed_at=THEN,
        run_id="run-1",
    )
    return replace(base, **fields)


def failed(path="a.md", content="text of a", **fields):
    """Return the current row of a document that failed the first time it was seen."""
    defaults = {
        "status": "failed",
        "error": "extract/damaged: is cut short",
        "attempts": 1,
        "revision": 0,
        "chunks": 0,
        "characters": 0,
        "tokens": 0,
        "embedder": None,
        "extractor": None,
    }
    return row(path, content, **{**defaults, **fields})


def skipped(path="a.md", content="text of a", **fields):
    """Return the current row of a document without indexable content."""
    return failed(path, content, **{"status": "skipped", "error": "extract/no-text: has no text", **fields})
