"""The lane for texts of documents: the vectors of a batch go into shards that no commit names, where runs look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from parquetry.embed.base import SERVICE_WORST, Batchable, Vectors
from parquetry.llm.spending import Usage
from parquetry.model import Chunk
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.storage.files.layout import Layout, batch_shard_name
from parquetry.storage.lake.batch_ends import BatchEnd
from parquetry.storage.lake.batches import BatchItem, Claim, OpenBatch
from parquetry.storage.lake.shards import RevisionChunks, write_chunks
from parquetry.tasks.batches.lane_user import LaneUser
from parquetry.tasks.batches.outbox import BatchRequest, Owner
from parquetry.tasks.batches.sending import SendingLane

ENDPOINT = "/v1/embeddings"
_NO_REVISION = 0
"""revision that no document has: the rows can never become visible"""
_NO_CHUNK = Chunk(0, 0, 0, "document", None, ())


class TextLane:
    """Hand over texts that have no vector yet.

    Args:
        lane: lane of the model.
        embedder: the model.
        count_tokens: counts tokens as the embedder does.
        price_share: price of a batch, as a share of the ordinary price.
    """

    def __init__(
        self,
        lane: SendingLane[Vectors],
        embedder: Batchable,
        count_tokens: Callable[[Sequence[str]], Sequence[int]],
        price_share: float,
    ) -> None:
        self.lane = lane
        self._embedder = embedder
        self._count_tokens = count_tokens
        self._price = (embedder.price_per_million_tokens or 0.0) * price_share / 1e6

    def waits(self, text_hash: str, text: str, owner: Owner | None) -> bool:
        """Return True if the vector of a text is on its way, or to be sent for; False if it has to be computed now.

        Args:
            text_hash: hash of the text.
            text: as embedded, without the prefix of documents.
            owner: source of its first document; None for a text that cannot wait.

        Raises:
            BudgetReached: the budget does not allow the text.
        """
        return self.lane.waits(text_hash, lambda: self._request(text, owner))

    def _request(self, text: str, owner: Owner | None) -> BatchRequest | None:
        # Whoever hands in a document waits for it.
        body = None if owner is None or owner[1] == UPLOADS else self._embedder.batch_request(text)
        if owner is None or body is None:
            return None
        size = len(body["input"].encode("utf-8", "replace"))
        tokens = int(size * SERVICE_WORST.tokens_per_byte) + SERVICE_WORST.tokens_per_text
        return BatchRequest(body, owner, tokens, tokens * self._price, self._count_tokens([body["input"]])[0])


def text_user(
    model_id: str,
    embedder: Batchable,
    price_share: float,
    layout: Layout,
    stored_in: Callable[[str, Iterable[str]], None],
    find_in: Callable[[Sequence[str]], None],
) -> LaneUser[Vectors]:
    """Return the parts of a lane for texts.

    Args:
        model_id: id of the embedder.
        embedder: the embedder.
        price_share: price of a batch, as a share of the ordinary price.
        layout: layout of the corpus.
        stored_in: receives the path of each shard that this process writes, and the hashes of its texts.
        find_in: receives the paths of the shards of each batch that has ended.
    """
    price = embedder.price_per_million_tokens

    def read(reply: object) -> tuple[Vectors, Usage]:
        vector, tokens = embedder.batch_vector(reply)
        return vector, Usage(1, tokens, 0, tokens * (price or 0.0) * price_share / 1e6)

    return LaneUser(
        "embed",
        model_id,
        ENDPOINT,
        "batch_api.embedding",
        "text",
        embedder.batches(),
        read,
        partial(_store, layout, model_id, stored_in),
        price is not None,
        lambda number, claim, end: find_in(_shards(layout, number, claim, end)),
    )


def _shards(layout: Layout, number: int, claim: Claim, end: BatchEnd) -> list[str]:
    """Return the shards with the vectors of a batch."""
    names = (batch_shard_name(claim.run_id, number, part) for part in range(end.parts))
    return [layout.shard("chunks", name) for name in names]


def _store(
    layout: Layout,
    model_id: str,
    stored_in: Callable[[str, Iterable[str]], None],
    batch: OpenBatch,
    part: int,
    results: Sequence[tuple[BatchItem, Vectors]],
) -> None:
    keys = [item.custom_id for item, _ in results]
    tokens = [item.tokens for item, _ in results]
    rows = RevisionChunks(_NO_REVISION, [_NO_CHUNK] * len(keys), [""] * len(keys), tokens, keys)
    vectors = np.array([vector for _, vector in results], np.float32)
    name = batch_shard_name(batch.claim.run_id, batch.number, part)
    write_chunks(layout, name, [rows], model_id, vectors)
    stored_in(layout.shard("chunks", name), keys)
