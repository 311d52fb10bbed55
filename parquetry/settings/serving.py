"""Settings of the service: `[serve]`, `[uploads]` and `[metadata_denylists]`."""

from __future__ import annotations

from pydantic import Field

from parquetry.model import What
from parquetry.settings.base import LONGEST_WAIT, MOST_BYTES, Section

MIB = 1024 * 1024


class ServeSettings(Section):
    """The HTTP service, `parquetry serve`."""

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on; any but loopback needs tokens.")
    port: int = Field(8000, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    workers: int = Field(1, ge=1, le=64, description="Processes that answer requests.")
    read_only: bool = Field(False, description="Refuse every request that would change the corpus.")
    token_required: bool = Field(False, description="Refuse requests without a token on loopback, too.")
    state: str | None = Field(
        None,
        examples=["/var/lib/parquetry"],
        description="Folder of tokens, jobs and audit events; default: `service` in a local corpus, else the user's "
        "state folder.",
    )
    hosts: tuple[str, ...] = Field(
        (),
        examples=[["kb.example.com"]],
        description="Host names that requests may name, besides loopback; empty allows any where tokens are required.",
    )
    cors_origins: tuple[str, ...] = Field(
        (), examples=[["https://app.example.com"]], description="Origins whose pages may call the service."
    )
    wait_seconds: float = Field(
        60, gt=0, le=LONGEST_WAIT, description="A write that takes longer is answered with the address of its job."
    )
    max_document_bytes: int = Field(32 * MIB, ge=1, le=MOST_BYTES, description="Largest document of an upload.")
    max_body_bytes: int = Field(44 * MIB, ge=1024, le=MOST_BYTES, description="Largest body of a request.")
    max_file_bytes: int = Field(
        512 * MIB, ge=1, le=MOST_BYTES, description="Largest file of `/v1/files`, which is kept on disk as it arrives."
    )
    body_seconds: float = Field(60, gt=0, le=LONGEST_WAIT, description="Time for a request's body to arrive.")
    requests_per_minute: int = Field(
        6000, ge=1, le=10_000_000, description="Requests per token and worker; above it, 429 with Retry-After."
    )
    audit_text: bool = Field(False, description="Keep the text of questions in audit events, see docs/tokens.md.")
    vectors_in_memory: bool = Field(
        True,
        description="Keep the vectors in the memory of each worker, with the `serve` extra: 1.1 GB for a million "
        "chunks of 256 dimensions.",
    )


class UploadsSettings(Section):
    """Documents handed in through the service or `parquetry add`."""

    uri: str | None = Field(
        None,
        min_length=1,
        examples=["s3://bucket/uploads"],
        description="Folder or URL where uploads are kept; default: `uploads` below the corpus root.",
    )
    allow: tuple[str, ...] = Field(
        (),
        examples=[["wiki.intern", "10.1.0.0/16"]],
        description="Hosts and networks, perhaps with a port, that imported pages may be on although they are not "
        "public.",
    )


class DenylistSettings(Section):
    """Top-level metadata keys that no answer of the service shows."""

    knowledge: tuple[str, ...] = Field((), examples=[["salary"]], description="Keys left out of documents' metadata.")
    entries: tuple[str, ...] = Field((), examples=[["session"]], description="Keys left out of entries' metadata.")

    def of(self, what: What) -> frozenset[str]:
        """Return the keys left out where documents, entries, or both are asked for."""
        asked = {"documents": self.knowledge, "entries": self.entries, "both": self.knowledge + self.entries}
        return frozenset(asked[what])
