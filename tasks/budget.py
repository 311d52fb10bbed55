"""Budgets: checks of prices and estimates before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable

from parquetry.embed.registry import price_of
from parquetry.errors import RefusedError, SettingsError
from parquetry.planning.report import dollars
from parquetry.plural import counted
from parquetry.settings.sections import Settings


def check_budget(what: str, cost_usd: float | None, tokens: int, budget_usd: float | None, key: str) -> None:
    """Stop before a run that would exceed its budget.

    Args:
        what: the run, as the subject of the message.
        cost_usd: estimated cost in US dollars; None if a price is unknown.
        tokens: estimated tokens.
        budget_usd: budget in US dollars; None if there is none.
        key: settings key of the budget.

    Raises:
        RefusedError: gives the estimate and the budget.
    """
    if budget_usd is not None and cost_usd is not None and cost_usd > budget_usd:
        raise RefusedError(
            f"{what} would cost about {dollars(cost_usd)} for {counted(tokens, 'token')}, more than the budget of "
            f"${budget_usd:g} ({key}); nothing was spent"
        )


def check_prices(settings: Settings, namespaces: Iterable[str], budget_usd: float | None, key: str) -> None:
    """Stop a run with a budget but without prices to measure it by.

    Args:
        settings: with the embedders and their prices.
        namespaces: namespaces in which the run embeds.
        budget_usd: budget in US dollars; None if there is none.
        key: settings key of the budget.

    Raises:
        SettingsError: the price of an embedder is not known.
    """
    for namespace in sorted(set(namespaces)) if budget_usd is not None else ():
        name = settings.embedder_of(namespace)
        if price_of(name, settings.embedding) is None:
            raise SettingsError(
                f"there is a budget ({key}), and what {name} costs is not known: set "
                "embedding.price_per_million_tokens (0 if it costs nothing), or remove the budget"
            )
