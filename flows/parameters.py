"""Parameters of the flows: pydantic models, which the Prefect UI shows as forms."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class CorpusParameters(BaseModel):
    """Which corpus, and with which settings."""

    model_config = ConfigDict(extra="forbid")

    config: str | None = Field(None, title="Settings file", description="Default: parquetry.toml where the flow runs.")
    corpus: str | None = Field(None, title="Corpus", description="Folder of the corpus, over what the file says.")
    namespace: str | None = Field(None, title="Namespace", description="Only this part of the corpus.")


class RefreshParameters(CorpusParameters):
    """A scheduled or on-demand refresh."""

    targets: list[str] = Field([], title="Targets", description="Sources, folders or files; empty for all sources.")
    allow_removals: bool = Field(
        False, title="Allow removals", description="Agree to the removal of any number of documents."
    )


class ReindexParameters(CorpusParameters):
    """An on-demand rebuild of documents, whatever their hashes say."""

    documents: list[str] = Field(
        [], title="Documents", description="Ids, uris, or globs over names and paths; empty for every document."
    )
    embeddings_only: bool = Field(
        False,
        title="Embeddings only",
        description="Compute vectors anew from the stored text; do not read the sources.",
    )
