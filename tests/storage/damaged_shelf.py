"""A corpus with rows in every table, and the effects of a bad disk on its files."""

from __future__ import annotations

from dataclasses import fields

from parquetry.model import Failure, Note
from parquetry.planning.rows import RunStamp
from parquetry.storage.lake.shards import write_notes
from tests.records import NOW
from tests.storage.notebook import ELM, OAK, Notebook
from tests.storage.shelf import Shelf


def make(root):
    """Create a corpus with rows in every table and an up-to-date index."""
    shelf = Shelf(root)
    shelf.publish({"a.md": ["the oak stands here", "a second oak chunk"], "b.md": ["the elm is sawn by ada"]})
    Notebook(shelf).learn(OAK, ELM)
    shelf.publish({"c.md": ["an ash bends over the oak"]})
    shelf.remove("b.md")
    (first, *_) = shelf.rows()
    note = Note(first.revision, first.uri, "extract", "something was worked around")
    shelf.lake.register([write_notes(shelf.lake.layout, "n.parquet", [note], RunStamp("run-1", NOW))], "run-1")
    failure = Failure(**{field.name: 1 if field.name == "attempts" else "x" for field in fields(Failure)})
    shelf.lake.record({"run_id": "run-1", "kind": "refresh", "started_at": NOW, "seconds": 1.0}, [failure])
    shelf.lake.record_searches([{"searched_at": NOW, "query": "oak", "mode": "text", "level": "chunk", "k": 5}])


def later(corpus):
    """Return a shelf that continues a corpus."""
    shelf = Shelf(corpus)
    shelf.run_ids = "late-{}"
    return shelf


DAMAGES = {
    "deleted": lambda content: None,
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "first bit": lambda content: flipped(content, 0),
    "a bit in the middle": lambda content: flipped(content, len(content) // 2),
    "last bit": lambda content: flipped(content, len(content) - 1),
}


def flipped(content, place):
    changed = bytearray(content)
    changed[place] ^= 1 << place % 8
    return bytes(changed)


def damage(file, how):
    content = DAMAGES[how](file.read_bytes())
    file.unlink() if content is None else file.write_bytes(content)


def files_of(corpus, table):
    """Return the shards of a table, and the commits that its newest version is read from."""
    return [*sorted((corpus / table).glob("*.parquet")), *sorted((corpus / table / "_delta_log").glob("*.json"))]
