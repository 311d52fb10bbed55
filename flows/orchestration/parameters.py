"""Pydantic models of the flows' parameters; the Prefect UI shows them as forms."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from parquetry.errors import SettingsError
from parquetry.planning.compaction import MANY_FILES

_BUDGET = Field(
    None, ge=0, title="Budget", description="Maximum US dollars of this run, in the place of `refresh.budget_usd`."
)


class Parameters(BaseModel):
    """Parameters shared by all flows."""

    model_config = ConfigDict(extra="forbid")

    namespace: str | None = Field(
        None, title="Namespace", pattern=r"^[\w.-]+$", description="Only this part of the corpus."
    )

    def subject(self) -> str:
        """Return the subject of a run with these parameters, for its name."""
        return self.namespace or "all"


class RefreshParameters(Parameters):
    """A scheduled or on-demand refresh."""

    targets: list[str] = Field(
        [], title="Targets", description="Names of sources, folders or files; empty for all sources."
    )
    allow_removals: bool = Field(
        False, title="Allow removals", description="Agree to the removal of any number of documents."
    )
    rehash: bool = Field(
        False, title="Rehash", description="Read every document, and compare its bytes with what is published."
    )
    budget_usd: float | None = _BUDGET

    def subject(self) -> str:
        names = [target.rstrip("/").rpartition("/")[2] or target for target in self.targets]
        return _several(self.namespace, names)


class ReindexParameters(Parameters):
    """An on-demand rebuild of documents, regardless of their hashes."""

    documents: list[str] = Field([], title="Documents", description="Ids, uris, or globs over names and paths.")
    all: bool = Field(False, title="All", description="Every document; needed where none is named.")
    embeddings_only: bool = Field(
        False,
        title="Embeddings only",
        description="Recompute vectors from the stored text without reading the sources.",
    )
    budget_usd: float | None = _BUDGET

    def check(self) -> None:
        """Reject parameters that neither name documents nor ask for all, or do both.

        Raises:
            SettingsError: the message names the parameters to set.
        """
        if self.all == bool(self.documents):
            given = "both are given" if self.all else "neither is given"
            raise SettingsError(f'reindex takes "documents" or "all": true, and {given}; nothing was done')

    def subject(self) -> str:
        return _several(self.namespace, self.documents)


class SessionsParameters(Parameters):
    """Learning from finished chat sessions."""

    targets: list[str] = Field(
        [], title="Targets", description="Names of sources of sessions, folders or files; empty for all such sources."
    )
    review: bool = Field(
        False, title="Review", description="Wait for a person's answer about merges before anything is published."
    )
    retry_quarantined: bool = Field(
        False, title="Retry quarantined", description="Ask again about parts of sessions that were quarantined before."
    )

    def subject(self) -> str:
        names = [target.rstrip("/").rpartition("/")[2] or target for target in self.targets]
        return _several(self.namespace, names)


class MaintenanceParameters(BaseModel):
    """Scheduled or on-demand upkeep."""

    model_config = ConfigDict(extra="forbid")

    least_files: int = Field(
        MANY_FILES,
        ge=2,
        title="Least files",
        description="Small files of a table from which on they are written together.",
    )


PARAMETERS: Mapping[str, type[Parameters]] = {
    "refresh": RefreshParameters,
    "reindex": ReindexParameters,
    "sessions": SessionsParameters,
}
"""model of each flow's parameters"""


def _several(namespace: str | None, names: list[str]) -> str:
    shown = names[0] if len(names) == 1 else f"{names[0]}+{len(names) - 1}" if names else None
    return ":".join(part for part in (namespace, shown) if part) or "all"
