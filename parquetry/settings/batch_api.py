"""Settings of the batch API of embedding and language-model services."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parquetry.settings.base import LONGEST_WAIT, Section

When = Literal["never", "large", "always"]
_WHEN = "`large`: work of `large_tokens` and more; `always`, `never`."


class BatchApiSettings(Section):
    """Work sent to a service as batches, which it answers within a day and at a lower price."""

    embedding: When = Field("never", description=f"Texts of documents, for `openai:` embedders. {_WHEN}")
    sessions: When = Field("never", description=f"Learning from chat sessions. {_WHEN}")
    large_tokens: int = Field(
        1_000_000, ge=1, le=1_000_000_000_000, description="Expected tokens from which on work is large."
    )
    wait_minutes: float = Field(
        0,
        ge=0,
        le=10_080,
        description="Time for which a run waits for its batches. 0: it ends, and a later run takes what is done.",
    )
    poll_seconds: float = Field(60, gt=0, le=LONGEST_WAIT, description="Between two looks at a batch, while waiting.")
    price_share: float = Field(0.5, ge=0, le=1, description="Price of a batch, as a share of the ordinary price.")
    max_requests: int = Field(50_000, ge=1, le=1_000_000, description="Requests of one batch; each holds one text.")
    max_bytes: int = Field(200_000_000, ge=10_000, le=10_000_000_000, description="Size of the file of one batch.")
    max_tokens: int | None = Field(
        None,
        ge=1,
        le=1_000_000_000_000,
        examples=[3_000_000],
        description="Tokens of one batch, for an account whose queue takes no more; counted at one a byte.",
    )

    def takes(self, when: When, tokens: int) -> bool:
        """Return True if work is sent as batches.

        Args:
            when: the setting of its kind.
            tokens: expected tokens of the work.
        """
        return when == "always" or (when == "large" and tokens >= self.large_tokens)
