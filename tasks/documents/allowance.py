"""Allowances: the parts of a run's budget that workers may spend, one for each batch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from parquetry.embed.registry import price_of
from parquetry.errors import BudgetReached, SettingsError
from parquetry.llm.spending import Ledger
from parquetry.planning.batches import Batch
from parquetry.settings.sections import Settings
from parquetry.storage.files.layout import Layout
from parquetry.storage.lake.allowances import Allowances
from parquetry.tasks.documents.run import BUDGET_KEY


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of what a batch may use, in US dollars per million tokens; None if unknown."""

    embedding: float | None
    descriptions: tuple[float, float] | None
    """of tokens read and written; None if no image is described"""

    @property
    def are_nothing(self) -> bool:
        return not self.embedding and self.descriptions is None

    def __str__(self) -> str:
        """Format as `$0.02 per million tokens embedded, $0.15 read and $0.6 written for descriptions`."""
        embedding = "unknown" if self.embedding is None else f"${self.embedding:g} per million tokens embedded"
        if self.descriptions is None:
            return embedding
        read, written = self.descriptions
        return f"{embedding}, ${read:g} read and ${written:g} written for descriptions"


@dataclass(frozen=True, slots=True)
class BatchAllowance:
    """A part of a run's budget for one batch."""

    usd: float
    """US dollars"""
    prices: Prices
    """those of the run, which its workers must have too"""
    name: str = ""
    """name of its marks in the corpus; empty if there is nothing to spend"""


def prices_of(batch: Batch, settings: Settings) -> Prices:
    """Return the prices of a batch, by the settings of this process."""
    embedding = price_of(settings.embedder_of(batch.changes[0].namespace), settings.embedding)
    by_default = settings.extraction.include_image_descriptions
    chosen = (None if change.item is None else change.item.describe for change in batch.changes)
    descriptions = None
    if any(by_default if each is None else each for each in chosen):
        llm = settings.llm.price
        descriptions = (llm.usd_per_million_input_tokens, llm.usd_per_million_output_tokens) if llm else (0.0, 0.0)
    return Prices(None if embedding is None else embedding.usd_per_million_tokens, descriptions)


class AllowanceLedger(Ledger):
    """Ledger of one execution of a batch, which claims the batch's allowance before its first call with a price.

    Args:
        allowance_usd: US dollars.
        claim: returns True if no other execution has claimed the allowance, and it has not ended.
    """

    def __init__(self, allowance_usd: float, claim: Callable[[], bool]) -> None:
        super().__init__(allowance_usd, BUDGET_KEY)
        self._claim = claim
        self._claiming = threading.Lock()
        self._claimed: bool | None = None

    @property
    def is_claimed(self) -> bool:
        """True if this execution has claimed the allowance."""
        with self._claiming:
            return self._claimed is True

    def begin(self, expected_usd: float, *, patient: bool = False) -> None:
        self._check_claimed()
        super().begin(expected_usd, patient=patient)

    def commit(self, expected_usd: float) -> None:
        self._check_claimed()
        super().commit(expected_usd)

    def _check_claimed(self) -> None:
        with self._claiming:
            if self._claimed is None and self.budget_usd:
                self._claimed = self._claim()
            if self._claimed is False:
                raise BudgetReached("another worker, which may be lost, has begun to spend what this batch may cost")


def ledger_of(batch: Batch, allowance: BatchAllowance | None, settings: Settings, layout: Layout) -> Ledger:
    """Return the ledger of one execution of a batch.

    Args:
        batch: the batch.
        allowance: its part of the budget; None if the run has none.
        settings: settings of this process.
        layout: layout of the corpus.

    Raises:
        SettingsError: this process has other prices than the run, so that it would measure the budget wrongly.
    """
    if allowance is None:
        return Ledger()
    own = prices_of(batch, settings)
    if own != allowance.prices:
        raise SettingsError(
            f"prices of a worker ({own}) differ from those of the run ({allowance.prices}); a budget ({BUDGET_KEY}) "
            "needs the same everywhere: give every worker the settings of the run"
        )
    return AllowanceLedger(allowance.usd, partial(Allowances(layout).claim, allowance.name))
