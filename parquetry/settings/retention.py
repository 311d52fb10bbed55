"""Settings of what a corpus keeps of its past."""

from __future__ import annotations

from pydantic import Field, model_validator

from parquetry.settings.base import Section
from parquetry.settings.schedule import check_cron


class RetentionSettings(Section):
    """Earlier versions that `compact` and `vacuum` keep, apart from those with a tag."""

    days: int = Field(
        30, ge=1, le=36_500, description="Versions that were the newest at some time within so many days are kept."
    )
    versions: int = Field(10, ge=1, le=1_000_000, description="So many of the newest versions are kept, however old.")
    schedule: str | None = Field(
        None,
        examples=["0 5 * * *"],
        description="Cron expression, in UTC, for scheduled maintenance: `compact` and `vacuum`, where there is "
        "something to do.",
    )

    @model_validator(mode="after")
    def _schedule_fires(self) -> RetentionSettings:
        if self.schedule is not None:
            try:
                check_cron(self.schedule)
            except ValueError as error:
                raise ValueError(f"schedule {self.schedule!r} of [retention] {error}") from None
        return self
