"""Settings of the places that documents come from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from parquetry.model import Visibility
from parquetry.settings.base import Section
from parquetry.settings.home import readable_url
from parquetry.settings.schedule import EXAMPLE, check_cron

Place = Annotated[str, AfterValidator(readable_url)]
"""path or URL"""


class SourceSettings(Section):
    """A place that documents come from."""

    name: str = Field(
        min_length=1,
        examples=["documents"],
        description="Part of every document's identity: keep it when the place moves.",
    )
    uri: Place = Field(min_length=1, examples=["./documents"], description="Folder, file or URL.")
    content: Literal["documents", "sessions"] = Field(
        "documents",
        description="What it holds: documents for `refresh`, or finished chat sessions for `sessions refresh`.",
    )
    include: tuple[str, ...] = Field(
        (), examples=[["**/*.md", "**/*.pdf"]], description="Globs (gitignore rules); empty means everything."
    )
    exclude: tuple[str, ...] = Field(
        (),
        examples=[["drafts/**"]],
        description="Globs to leave out, besides hidden files, caches, `build` and `dist`.",
    )
    namespace: str | None = Field(
        None, pattern=r"^[\w.-]+$", examples=["hr"], description="Default: the corpus's namespace."
    )
    visibility: Visibility = Field("public", description="Who may see the documents.")
    org_id: str | None = Field(None, examples=["acme"], description="Needed for visibility `organization`.")
    user_id: str | None = Field(None, examples=["ada"], description="Needed for visibility `individual`.")
    tags: tuple[str, ...] = Field((), examples=[["policy"]], description="Labels to filter by.")
    requests_per_second: float | None = Field(
        None,
        gt=0,
        le=1_000_000,
        examples=[5.0],
        description="Documents fetched per second at most, over all sources of one host or bucket.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        examples=[{"profile": "backup"}],
        description="What only this kind of source knows: see the guide of its kind.",
    )
    schedule: str | None = Field(
        None, examples=["0 * * * *"], description="Cron expression, in UTC, for scheduled runs over this source."
    )

    @model_validator(mode="after")
    def _owner_given(self) -> SourceSettings:
        if self.visibility == "organization" and not self.org_id:
            raise ValueError('visibility = "organization" needs org_id')
        if self.visibility == "individual" and not self.user_id:
            raise ValueError('visibility = "individual" needs user_id')
        return self

    @model_validator(mode="after")
    def _schedule_fires(self) -> SourceSettings:
        if self.schedule is not None:
            try:
                check_cron(self.schedule)
            except ValueError as error:
                wrong = f"schedule {self.schedule!r} of source {self.name!r} {error}"
                raise ValueError(f"{wrong}; {EXAMPLE!r} is every night at three (UTC)") from error
        return self
