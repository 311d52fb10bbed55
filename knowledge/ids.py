"""Every id and hash of the system, each derived from content or place. Nothing else hashes."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from typing import IO

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:parquetry:document")
_DIGEST_BYTES = 16


def document_id(namespace: str, source: str, path: str) -> str:
    """UUIDv5 of a document's place.

    The same path in the same source is always the same document, wherever the source's root is mounted.
    """
    return str(uuid.uuid5(_NAMESPACE, "\x00".join((namespace, source, path))))


def chunk_id(document: str, index: int) -> str:
    """Id of a chunk from its document's id and its 0-based index: `{document}-chunk-{index}`."""
    return f"{document}-chunk-{index}"


def revision(document: str, run: str) -> int:
    """A BIGINT (63 bits, positive) that is unique to one write of one document in one run."""
    digest = hashlib.blake2b(f"{document}\x00{run}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 1) or 1


def content_hash(content: bytes) -> str:
    """BLAKE2b-128 of a document's bytes, in hex."""
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def stream_hash(stream: IO[bytes]) -> str:
    """`content_hash` of everything that is left in a binary stream, in bounded memory."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    while block := stream.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def text_hash(text: str) -> str:
    """BLAKE2b-128 of exactly the text that goes to an embedder, in hex: the key under which its vector is found."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=_DIGEST_BYTES).hexdigest()


def text_hashes(texts: Iterable[str]) -> list[str]:
    return [text_hash(text) for text in texts]


def place_hash(root: str) -> str:
    """Sixteen hex digits of a corpus's place, to name what is kept of it elsewhere."""
    return hashlib.blake2b(root.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def settings_hash(settings: Mapping[str, object]) -> str:
    """Eight hex digits over a JSON-able mapping; the order of keys does not matter."""
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.blake2b(canonical.encode(), digest_size=4).hexdigest()
