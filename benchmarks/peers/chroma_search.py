"""Vector search by Chroma with its HNSW index: `chroma_search.py MATERIAL`."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

import chromadb
from chromadb.config import Settings
from search_rows import Asked, bytes_below

NEAREST = 10
BATCH = 5_000


def main() -> None:
    asked = Asked(sys.argv[1])
    folder = asked.folder / "chroma"
    shutil.rmtree(folder, ignore_errors=True)
    client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
    collection = client.create_collection("chunks", configuration={"hnsw": {"space": "cosine"}})
    started = time.perf_counter()
    for at in range(0, len(asked.vectors), BATCH):
        part = asked.vectors[at : at + BATCH]
        collection.add(
            [str(at + i) for i in range(len(part))],
            embeddings=part,
            metadatas=[{"visible_to": int(group)} for group in asked.groups[at : at + BATCH]],
        )
    build = time.perf_counter() - started

    def search(query: Any, where: Any = None) -> list[int]:
        found = collection.query(query_embeddings=[query], n_results=NEAREST, where=where, include=[])
        return [int(each) for each in found["ids"][0]]

    asked.time("vector", "HNSW, defaults", "all", search)
    for group, share in ((1, "40 %"), (2, "1 %")):
        asked.time(
            f"vector, {share} visible",
            "HNSW, defaults, where",
            share,
            lambda query, group=group: search(query, {"visible_to": group}),
        )
    asked.report(build_seconds=round(build, 2), bytes=bytes_below(folder))


if __name__ == "__main__":
    main()
