"""All ids and hashes, each derived from content or place. No other module hashes."""

from __future__ import annotations

import hashlib
import json
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import IO

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:parquetry:document")
_ENTRY = uuid.uuid5(uuid.NAMESPACE_URL, "urn:parquetry:entry")
_DIGEST_BYTES = 16


def document_id(namespace: str, source: str, path: str) -> str:
    """Return the UUIDv5 of a document's place.

    The same path in the same source is always the same document, wherever the source's root is mounted.
    """
    return str(uuid.uuid5(_NAMESPACE, "\x00".join((namespace, source, path))))


def chunk_id(document: str, index: int) -> str:
    """Return the id of a chunk from its document's id and its 0-based index: `{document}-chunk-{index}`."""
    return f"{document}-chunk-{index}"


def point_id(chunk: str) -> str:
    """Return the UUIDv5 of a chunk's id, for stores whose ids are UUIDs."""
    return str(uuid.uuid5(_NAMESPACE, chunk))


CHUNK_ID_SQL = "concat(d.document_id, '-chunk-', c.chunk_index)"
"""SQL of `chunk_id`, over documents `d` and chunks `c`; also understood by Polars"""


def revision(document: str, run: str) -> int:
    """Return a BIGINT (63 bits, positive) that is unique to one write of one document in one run."""
    digest = hashlib.blake2b(f"{document}\x00{run}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 1) or 1


def migration_mask(key: str) -> int:
    """Return the BIGINT (63 bits, positive) that a migration combines with a revision (XOR) to number its candidate.

    Args:
        key: key of the migration.
    """
    return revision("migration", key)


def entry_id(namespace: str, scope: Iterable[str | None], text: str) -> str:
    """Return the UUIDv5 of an entry: the same statement in the same scope is always the same entry.

    Args:
        namespace: of the entry.
        scope: visibility, organization, user.
        text: of the entry; case, space and the punctuation at its end make no difference.
    """
    said = " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".!\u3002 ")
    return str(uuid.uuid5(_ENTRY, "\x00".join((namespace, *(part or "" for part in scope), said))))


def decision_id(run: str, subject: str, number: int) -> str:
    """Return the id of a decision, twelve hex digits, from its run, its subject, and its number about that subject."""
    return hashlib.blake2b(f"{run}\x00{subject}\x00{number}".encode(), digest_size=6).hexdigest()


def answer_key(model: str, messages: Iterable[Mapping[str, object]], form: str) -> str:
    """Return the key under which a language model's answer is cached, from the whole question.

    Args:
        model: its name, with everything else that determines its answers.
        messages: of the conversation.
        form: of the requested reply.
    """
    asked = json.dumps([model, form, *messages], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(asked.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


def messages_hash(messages: Iterable[tuple[str, ...]]) -> str:
    """Hash the messages read from a chat, to detect later changes.

    Args:
        messages: the significant fields of each, in order.
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for parts in messages:
        digest.update(json.dumps(parts, separators=(",", ":")).encode())
    return digest.hexdigest()


def owner_folder(user_id: str | None) -> str:
    """Return the folder name for cached answers about one user's sessions; `shared` for sessions without a user."""
    if user_id is None:
        return "shared"
    return hashlib.blake2b(user_id.encode("utf-8", "surrogateescape"), digest_size=_DIGEST_BYTES).hexdigest()


def digest(*parts: str, size: int) -> bytes:
    """Return the BLAKE2b of several texts, to compare texts in memory; it is never stored.

    Args:
        parts: in order; boundaries between parts count.
        size: bytes of the digest.
    """
    told = "\x00".join((*(str(len(part)) for part in parts), *parts))
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=size).digest()


def memory_hash(*parts: str) -> int:
    """Return a hash of one or several texts (64 bits, signed) that holds in this process only; it is never stored.

    It takes a tenth of the time of `digest`. Python keys it anew in each process, so nobody can choose texts that
    collide.

    Args:
        parts: in order; boundaries between parts count.
    """
    return hash(parts[0]) if len(parts) == 1 else hash(parts)


def content_hash(content: bytes) -> str:
    """Return the BLAKE2b-128 of a document's bytes, in hex."""
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def stream_hash(stream: IO[bytes]) -> str:
    """Return the `content_hash` of the rest of a binary stream, in bounded memory."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    while block := stream.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def copied_hash(blocks: Iterable[bytes], write: Callable[[bytes], object]) -> str:
    """Write blocks of bytes one by one, and return the `content_hash` of them all."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for block in blocks:
        digest.update(block)
        write(block)
    return digest.hexdigest()


def name_hash(name: str) -> str:
    """Return the BLAKE2b-128 of a name in hex: the name on disk of what people may name as they like."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


def text_hash(text: str) -> str:
    """Return the BLAKE2b-128 of exactly the text sent to an embedder, in hex: the key of its vector."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=_DIGEST_BYTES).hexdigest()


def text_hashes(texts: Iterable[str]) -> list[str]:
    return [text_hash(text) for text in texts]


def place_hash(root: str) -> str:
    """Return sixteen hex digits of a corpus's location, which name data about it stored elsewhere."""
    return hashlib.blake2b(root.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def prompt_hash(text: str) -> str:
    """Return eight hex digits over a prompt's text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def settings_hash(settings: Mapping[str, object]) -> str:
    """Return eight hex digits over a JSON-able mapping; the order of keys does not matter."""
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.blake2b(canonical.encode(), digest_size=4).hexdigest()
