"""The settings file: one TOML file, validated as a whole before anything runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from parquetry.errors import SettingsError, WrongSettings
from parquetry.settings import bounded_toml
from parquetry.settings.base import HIGHEST_BUDGET, MOST_BYTES, Section
from parquetry.settings.batch_api import BatchApiSettings
from parquetry.settings.chat import AgentSettings, UpstreamSettings
from parquetry.settings.embedding import ChunkingSettings, EmbeddingSettings
from parquetry.settings.errors import explain
from parquetry.settings.extraction import ExtractionSettings
from parquetry.settings.hub import HubSettings
from parquetry.settings.llm import LlmSettings, SessionsSettings
from parquetry.settings.observability import ObservabilitySettings
from parquetry.settings.places import anchored
from parquetry.settings.rerank import RerankSettings
from parquetry.settings.retention import RetentionSettings
from parquetry.settings.runner import RunSettings
from parquetry.settings.serving import DenylistSettings, ServeSettings, UploadsSettings
from parquetry.settings.small_file import read_small
from parquetry.settings.source import Place, SourceSettings

DEFAULT_FILE = "parquetry.toml"
_UPLOADS = "uploads"
"""name of the source of documents that were handed in"""
_MAX_BYTES = 4 * 1024 * 1024
"""maximum bytes of a settings file"""


class CorpusSettings(Section):
    """Location of the corpus and its embedding model."""

    root: Place = Field(
        "./corpus",
        min_length=1,
        description="Folder of the corpus, or its address on an object store, as `s3://bucket/prefix`.",
    )
    single_writer: bool = Field(
        False,
        description="Write to an object store that does not honour conditional writes: exactly one process at a time.",
    )
    namespace: str = Field(
        "default", min_length=1, pattern=r"^[\w.-]+$", description="Namespace of sources that name none."
    )
    embedder: str = Field(
        "wordllama",
        description="`wordllama` (bundled), `openai:<model>` (any compatible endpoint), `onnx:<folder>`, or "
        "`onnx:<owner/name>` of the Hugging Face Hub.",
    )


class RefreshSettings(Section):
    """Batches, retries, removal guard and budget of a refresh."""

    workers: int = Field(2, ge=1, le=64, description="Batches in work at a time.")
    batch_bytes: int = Field(8 * 1024 * 1024, ge=1, le=MOST_BYTES, description="Source bytes per batch.")
    batch_documents: int = Field(200, ge=1, le=10_000, description="Documents per batch.")
    max_removed_share: float = Field(
        0.2, ge=0, le=1, description="A refresh that would remove a larger share of a source asks first."
    )
    max_removed_documents: int = Field(10, ge=0, le=1_000_000_000, description="Removing up to this many never asks.")
    attempts: int = Field(
        4, ge=1, le=20, description="Tries within one run of a listing or a fetch whose failure may pass."
    )
    max_attempts: int = Field(
        3, ge=1, le=1000, description="Runs that try a document again after a failure that may go away by itself."
    )
    budget_usd: float | None = Field(
        None,
        ge=0,
        le=HIGHEST_BUDGET,
        examples=[5.0],
        description="What a refresh may spend. One that is likely to cost more does not start; no request is made that "
        "could pass it.",
    )


class SearchSettings(Section):
    """Search in the corpus."""

    language: str = Field(
        "english",
        examples=["german"],
        description="Words are reduced to their stems by the Snowball rules of this language; `none` leaves them.",
    )
    fusion: Literal["convex", "rrf"] = Field(
        "convex",
        description="How a hybrid search puts two lists together: weighted normalised scores, or reciprocal ranks.",
    )
    vector_weight: float = Field(0.25, ge=0, le=1, description="Of the vector side; the keyword side has the rest.")
    depth: int = Field(100, ge=1, le=10_000, description="Best chunks of each side that a hybrid search fuses.")
    rrf_k: int = Field(10, ge=1, le=10_000, description="Of the fusion `rrf`: how little the first ranks stand out.")
    rerank: str | None = Field(
        None,
        pattern=r"^(llm|onnx:.+|service:.+)$",
        examples=["onnx:./models/cross-encoder"],
        description="What `--rerank` asks: `onnx:<folder>` of an exported cross-encoder, `onnx:<owner/name>` of the "
        "hub, `llm`, the `[llm]` model, or `service:<model>` of the service in `[rerank]`.",
    )
    index_folder: str | None = Field(
        None,
        examples=["/var/cache/parquetry"],
        description="Where search indexes are kept; default: beside the corpus, or in the user's cache if the corpus "
        "cannot be written.",
    )
    calibration: str | None = Field(
        None,
        examples=["./calibration.json"],
        description="File by `parquetry calibrate` that says what the scores of embedders and rerankers mean; the "
        "bundled embedder needs none.",
    )
    log: str | None = Field(
        None, examples=["searches.jsonl"], description="JSON-lines file that gets one event per search."
    )
    record_searches: bool = Field(False, description="Also keep the events in the corpus's table `searches`.")
    cache_entries: int = Field(256, ge=0, le=1_000_000, description="Answers that a service keeps in memory.")


class NamespaceSettings(Section):
    """A namespace with an embedding model other than `corpus.embedder`."""

    name: str = Field(
        min_length=1, pattern=r"^[\w.-]+$", examples=["contracts"], description="As in `source.namespace`."
    )
    embedder: str = Field(
        min_length=1,
        examples=["onnx:./models/e5-small"],
        description="As `corpus.embedder`; the keys of `[embedding]` hold for every model.",
    )


class Settings(Section):
    """All settings of `parquetry.toml`."""

    corpus: CorpusSettings = Field(default_factory=CorpusSettings)
    chunking: ChunkingSettings = Field(default_factory=ChunkingSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    extraction: ExtractionSettings = Field(default_factory=ExtractionSettings)
    refresh: RefreshSettings = Field(default_factory=RefreshSettings)
    run: RunSettings = Field(default_factory=RunSettings)
    llm: LlmSettings = Field(default_factory=LlmSettings)
    batch_api: BatchApiSettings = Field(default_factory=BatchApiSettings)
    sessions: SessionsSettings = Field(default_factory=SessionsSettings)
    search: SearchSettings = Field(default_factory=SearchSettings)
    retention: RetentionSettings = Field(default_factory=RetentionSettings)
    observability: ObservabilitySettings = Field(default_factory=ObservabilitySettings)
    rerank: RerankSettings = Field(default_factory=RerankSettings)
    hub: HubSettings = Field(default_factory=HubSettings)
    serve: ServeSettings = Field(default_factory=ServeSettings)
    upstream: UpstreamSettings = Field(default_factory=UpstreamSettings)
    uploads: UploadsSettings = Field(default_factory=UploadsSettings)
    metadata_denylists: DenylistSettings = Field(default_factory=DenylistSettings)
    namespace: tuple[NamespaceSettings, ...] = Field((), description="One `[[namespace]]` table per exception.")
    agent: tuple[AgentSettings, ...] = Field((), description="One `[[agent]]` table per agent.")
    source: tuple[SourceSettings, ...] = Field((), description="One `[[source]]` table per place.")

    def embedder_of(self, namespace: str) -> str:
        """Return the embedder of a namespace, as written in the settings."""
        own = (each.embedder for each in self.namespace if each.name == namespace)
        return next(own, self.corpus.embedder)

    @property
    def embedders(self) -> tuple[str, ...]:
        """All distinct embedders in the settings, the corpus's own first."""
        return tuple(dict.fromkeys((self.corpus.embedder, *(each.embedder for each in self.namespace))))

    @model_validator(mode="after")
    def _namespace_names_differ(self) -> Settings:
        names = [namespace.name for namespace in self.namespace]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two [[namespace]] tables are named {name!r}; a namespace has one embedder")
        return self

    @model_validator(mode="after")
    def _agent_names_differ(self) -> Settings:
        names = [agent.name for agent in self.agent]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two [[agent]] tables are named {name!r}; names must differ")
        return self

    @model_validator(mode="after")
    def _source_names_differ(self) -> Settings:
        seen: set[tuple[str, str]] = set()
        for source in self.source:
            if source.name == _UPLOADS:
                raise ValueError(f"the name {_UPLOADS!r} belongs to documents that were handed in; choose another")
            key = (source.namespace or self.corpus.namespace, source.name)
            if key in seen:
                raise ValueError(f"two sources of namespace {key[0]!r} are named {key[1]!r}; names must differ")
            seen.add(key)
        return self


def load_settings(file: str | os.PathLike[str] | None = None) -> Settings:
    """Read and validate the settings.

    Args:
        file: the settings file; None reads `parquetry.toml` in the working folder if it exists, else uses the defaults.

    Raises:
        SettingsError: the file is missing, is not TOML, or has an unknown key or an invalid value.
    """
    path = Path(file) if file is not None else Path(DEFAULT_FILE)
    if file is None and not path.exists():
        return Settings()
    try:
        content = read_small(path, _MAX_BYTES)
        values = bounded_toml.loads(content.decode("utf-8"))
    except FileNotFoundError as error:
        raise SettingsError(f"settings file {path} does not exist; `parquetry init` writes one") from error
    except OSError as error:
        raise SettingsError(f"settings file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"settings file {path} cannot be read: {error}") from error
    except ValueError as error:
        raise SettingsError(f"settings file {path} is not valid TOML: {error}") from error
    settings = anchored(parse_settings(values, str(path)), path.parent)
    if settings.uploads.uri is not None and settings.source:
        from parquetry.sources.nesting import check_uploads

        check_uploads(settings.source, settings.uploads.uri, str(path))
    if len(settings.source) > 1:
        from parquetry.settings.lines import lines_of
        from parquetry.sources.nesting import check_places

        check_places(
            settings.source, lines_of(content.decode("utf-8"), "source", "uri", len(settings.source)), str(path)
        )
    return settings


def parse_settings(values: dict[str, Any], origin: str) -> Settings:
    """Validate a mapping of sections.

    Args:
        values: sections by name, as in the file.
        origin: origin of the values, for messages.

    Raises:
        WrongSettings: one line per error, with its key, and the nearest valid key for an unknown one.
    """
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        # Omit pydantic's own messages: they repeat values.
        raise WrongSettings(*(f"{origin}: {explain(item, Settings)}" for item in error.errors())) from None


Override = Annotated[dict[str, Any], "section -> key -> value, over what the file says"]


def override(settings: Settings, values: Override) -> Settings:
    """Return settings with some keys replaced, all validated again."""
    # Unset keys stay unset, so that they can still be distinguished from explicit values.
    merged = settings.model_dump(exclude_unset=True)
    for section, keys in values.items():
        merged[section] = {**merged.get(section, {}), **keys}
    return parse_settings(merged, "command line")
