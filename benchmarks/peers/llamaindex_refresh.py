"""Refresh of a folder of PDFs into LanceDB with LlamaIndex; run by `benchmarks.refresh` in a separate environment.

Uses its own PDF reader and ingestion pipeline with a document store, and our vectors. Prints one JSON line.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

import wordllama
from llama_index.core import SimpleDirectoryReader
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.vector_stores.lancedb import LanceDBVectorStore

MODEL = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
DOCUMENTS = Path("documents.json")


class Bundled(BaseEmbedding):
    """Embedding with the same weights as the other contestants."""

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return MODEL.embed(texts, norm=True).tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Store(LanceDBVectorStore):
    """Vector store with a working deletion: current LanceDB reads text in double quotes as a column name."""

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        self.table.delete("{} = '{}'".format(self.doc_id_key, ref_doc_id.replace("'", "''")))


def main() -> None:
    logging.disable(logging.WARNING)
    started = time.perf_counter()
    first = not DOCUMENTS.exists()
    read = SimpleDirectoryReader(sys.argv[1], filename_as_id=True).load_data(num_workers=2)
    known = SimpleDocumentStore() if first else SimpleDocumentStore.from_persist_path(str(DOCUMENTS))
    pipeline = IngestionPipeline(
        # About 1,200 characters with an overlap of 200, in the splitter's tokens.
        transformations=[SentenceSplitter(chunk_size=300, chunk_overlap=50), Bundled(embed_batch_size=32)],
        docstore=known,
        vector_store=Store(uri="lance", mode="overwrite" if first else "append"),
        docstore_strategy=DocstoreStrategy.UPSERTS,
    )
    nodes = pipeline.run(documents=read, show_progress=False)
    known.persist(str(DOCUMENTS))
    print(json.dumps({"seconds": time.perf_counter() - started, "embedded": len(nodes)}))


if __name__ == "__main__":
    main()
