"""A corpus written directly through storage: texts and vectors by hand, no extraction and no model."""

import shutil
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from parquetry import ids
from parquetry.model import Chunk, Extraction, Part
from parquetry.settings.sections import SearchSettings
from parquetry.storage.files.layout import shard_name
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.index.open_index import in_memory
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.shards import RevisionChunks, stored_text, write_chunks, write_texts
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.search.filters import Filters
from parquetry.storage.search.searcher import Searcher
from tests.records import row

EMBEDDER = "model@4"


class Shelf:
    """A corpus, and the record of its publishes."""

    def __init__(self, root, **options):
        self.root = root
        self.lake = Lake(str(root), create=True, **options)
        self.runs = 0
        self.run_ids = "run-{}"
        self.settings = SearchSettings(language="none")
        self.extracted = {}
        """path -> fields of its extraction that differ from those of a plain text"""
        self.headings = {}
        """path -> headings above each of its chunks, if not `Heading`"""

    def copied_to(self, root):
        """Return a copy that goes on where this corpus is: copying takes less than publishing again."""
        shutil.copytree(self.root, root)
        copy = Shelf(root)
        copy.runs, copy.run_ids = self.runs, self.run_ids
        return copy

    def revision(self, path, chunks, run, **fields):
        """Return the row of a document made of these chunks, and the content of its shards."""
        text = "\n".join(chunks)
        namespace, source = fields.get("namespace", "default"), fields.get("source", "docs")
        identity = ids.document_id(namespace, source, path)
        spans, start, headings = [], 0, self.headings.get(path, ("Heading",))
        for index, chunk in enumerate(chunks):
            spans.append(Chunk(index, start, start + len(chunk), "document", None, headings))
            start += len(chunk) + 1
        part = Part(0, len(text), "document", 1, None, "text")
        extraction = Extraction(text, (part,), (), None, {}, "text/markdown", "markdown/1")
        extraction = replace(extraction, **self.extracted.get(path, {}))
        number = ids.revision(identity, run)
        counted = {"characters": len(text), "chunks": len(chunks), "tokens": 3 * len(chunks)}
        written = row(path, text, revision=number, run_id=run, **{**counted, **fields})
        hashes = [ids.text_hash(chunk) for chunk in chunks]
        return (
            written,
            stored_text(number, extraction),
            RevisionChunks(number, spans, chunks, [3] * len(chunks), hashes),
        )

    def write(self, documents, embedder=EMBEDDER, vectors=None, register=True, **fields):
        """Write shards of documents, path -> chunks, without publishing them."""
        self.runs += 1
        run = self.run_ids.format(self.runs)
        made = [self.revision(path, chunks, run, embedder=embedder, **fields) for path, chunks in documents.items()]
        dimension = int(embedder.rpartition("@")[2])
        count = sum(map(len, documents.values()))
        if vectors is None:
            vectors = np.random.default_rng(self.runs).normal(size=(count, dimension))
        vectors = np.asarray(vectors, np.float32).reshape(count, dimension)
        means = np.ones((len(made), dimension), np.float32)
        name = shard_name(run, 0)
        shards = (
            write_texts(self.lake.layout, name, [text for _, text, _ in made], embedder, means),
            write_chunks(self.lake.layout, name, [chunks for _, _, chunks in made], embedder, vectors),
        )
        if register:
            self.lake.register(shards, run)
        return [written for written, _, _ in made], run

    def publish(self, documents, base=None, **options):
        """Write and publish documents, path -> chunks."""
        rows, run = self.write(documents, **options)
        return self.lake.publish(base or self.lake.snapshot(), rows, run)

    def remove(self, path):
        (gone,) = [each for each in self.rows() if each.path == path]
        return self.lake.publish(self.lake.snapshot(), [replace(gone, removed=True)], f"remove-{path}")

    def permit(self, path, access):
        """Publish other permissions of a document and nothing else."""
        (known,) = [each for each in self.rows() if each.path == path]
        return self.lake.publish(self.lake.snapshot(), [replace(known, access=access)], f"permit-{path}")

    def rows(self, version=None):
        return current_rows(self.lake.snapshot(version))

    def connect(self, version=None):
        return connect_snapshot(self.lake.snapshot(version))

    @contextmanager
    def index(self, version=None):
        """Open a connection to the search index: its updated file, or an in-memory index for an earlier version."""
        snapshot = self.lake.snapshot(version)
        if version is None:
            opened = IndexFolder(snapshot.layout, self.settings).open(snapshot)
        else:
            opened = in_memory(snapshot, self.settings.language)
        yield opened.connection
        opened.close()

    def texts(self, version=None):
        """Return path -> visible chunks."""
        with self.connect(version) as connection:
            found = connection.execute(
                "SELECT path, text FROM chunks JOIN documents USING (document_id) ORDER BY path, chunk_index"
            ).fetchall()
        texts = {}
        for path, text in found:
            texts.setdefault(path, []).append(text)
        return texts

    def search(self, query="", vector=None, mode="text", k=5, version=None, embedder=EMBEDDER, **filters):
        """Return chunk texts, best first, with their scores."""
        with self.index(version) as connection:
            searcher = Searcher(connection, Filters(**filters), self.settings)
            vectors = {} if vector is None else {embedder: np.asarray(vector, np.float32)}
            hits = searcher.search(query, vectors, mode, k)
        return [(hit.row["text"], hit.score) for hit in hits]
