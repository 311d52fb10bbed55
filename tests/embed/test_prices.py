"""Prices of embedding models: that of the model, that of all, OpenAI's list; each with its day and place."""

from datetime import date

import pytest

from parquetry.embed.prices import Price, service_price
from parquetry.embed.registry import open_embedder, price_of
from parquetry.errors import WrongSettings
from parquetry.settings.embedding import EmbeddingSettings
from parquetry.settings.sections import parse_settings

SMALL = "text-embedding-3-small"
ONE = {"model": SMALL, "usd_per_million_tokens": 0.03, "as_of": date(2026, 7, 3)}


def settings(**keys):
    return EmbeddingSettings.model_validate({"base_url": "http://127.0.0.1:9/v1", "api_key": "x", **keys})


def test_price_of_the_model_comes_before_the_one_of_all():
    both = settings(prices=[ONE], price_per_million_tokens=5)
    assert price_of(f"openai:{SMALL}", both) == Price(0.03, date(2026, 7, 3), "embedding.prices")
    assert price_of("openai:other", both) == Price(5.0, None, "embedding.price_per_million_tokens")
    assert open_embedder(f"openai:{SMALL}", both).price_per_million_tokens == 0.03


def test_list_holds_for_openai_alone_and_says_of_which_day_it_is():
    price = service_price(SMALL, settings(), official=True)
    assert (price.usd_per_million_tokens, price.as_of, price.source) == (0.02, date(2024, 1, 25), "OpenAI's list")
    assert service_price("unheard-of", settings(), official=True) is None
    assert service_price(SMALL, settings(), official=False) is None
    assert price_of(f"openai:{SMALL}", settings()) is None
    assert service_price(SMALL, settings(prices=[ONE]), official=True).source == "embedding.prices"


def test_models_on_this_machine_are_free():
    assert price_of("wordllama", settings(price_per_million_tokens=5)) == Price(0.0, None, "this machine")


@pytest.mark.parametrize(
    ("price", "shown"),
    [
        (Price(0.02, date(2026, 7, 3), "embedding.prices"), "$0.02 per million tokens (embedding.prices, 2026-07-03)"),
        (Price(5.0, None, "a contract"), "$5 per million tokens (a contract)"),
    ],
)
def test_price_is_shown_with_its_place_and_day(price, shown):
    assert str(price) == shown


@pytest.mark.parametrize(
    ("prices", "told"),
    [
        ([ONE, ONE], f"the model {SMALL} has two"),
        ([{"model": SMALL, "usd_per_million_tokens": -1}], "usd_per_million_tokens"),
        ([{"model": SMALL}], "usd_per_million_tokens"),
        ([{"model": "", "usd_per_million_tokens": 1}], "model"),
    ],
)
def test_price_that_is_none_is_told(prices, told):
    with pytest.raises(WrongSettings, match=told):
        parse_settings({"embedding": {"prices": prices}}, "test")
