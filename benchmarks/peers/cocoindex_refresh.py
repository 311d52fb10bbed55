"""Refresh of a folder of PDFs into LanceDB with CocoIndex; run by `benchmarks.refresh` in a separate environment.

Uses our PDF engine, chunk size and vectors. Prints one JSON line.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import cocoindex
import numpy as np
import pypdfium2
from cocoindex.connectors import lancedb, localfs
from cocoindex.ops.text import RecursiveSplitter
from cocoindex.resources.file import FileLike, PatternFilePathMatcher
from cocoindex.resources.id import IdGenerator
from cocoindex.resources.schema import VectorSchema
from numpy.typing import NDArray

DATABASE = cocoindex.ContextKey[lancedb.LanceAsyncConnection]("database")
SPLITTER = RecursiveSplitter()
EMBEDDED: list[int] = []


@functools.cache
def model() -> Any:
    import wordllama

    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


@dataclass
class Chunk:
    """Row of the table."""

    id: int
    filename: str
    page: int
    text: str
    vector: Annotated[NDArray[np.float32], VectorSchema(dtype=np.dtype("float32"), size=256)]


@cocoindex.lifespan
async def lifespan(builder: cocoindex.EnvironmentBuilder) -> AsyncIterator[None]:
    builder.provide(DATABASE, await lancedb.connect_async("./lance"))
    yield


@cocoindex.fn(memo=True)
async def process(file: FileLike, table: lancedb.TableTarget[Chunk]) -> None:
    content = await file.read()
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError:
        return
    pieces = [
        (number, piece.text)
        for number, page in enumerate(document, 1)
        for piece in SPLITTER.split(page.get_textpage().get_text_bounded(), chunk_size=1200, chunk_overlap=200)
    ]
    if not pieces:
        return
    vectors = model().embed([text for _, text in pieces], norm=True)
    EMBEDDED.append(len(pieces))
    ids = IdGenerator()
    for (number, text), vector in zip(pieces, vectors, strict=True):
        name = str(file.file_path.path)
        row = Chunk(await ids.next_id(text), name, number, text, np.asarray(vector, np.float32))
        table.declare_row(row=row)


@cocoindex.fn
async def refresh(folder: Path) -> None:
    schema = await lancedb.TableSchema.from_class(Chunk, primary_key=["id"])
    table = await lancedb.mount_table_target(DATABASE, table_name="chunks", table_schema=schema)
    matcher = PatternFilePathMatcher(included_patterns=["**/*.pdf"])
    files = localfs.walk_dir(folder, recursive=True, path_matcher=matcher)
    await cocoindex.mount_each(process, files.items(), table)


def main() -> None:
    app = cocoindex.App(cocoindex.AppConfig(name="Refresh"), refresh, folder=Path(sys.argv[1]))
    started = time.perf_counter()
    app.update_blocking()
    print(json.dumps({"seconds": time.perf_counter() - started, "embedded": sum(EMBEDDED)}))


if __name__ == "__main__":
    main()
