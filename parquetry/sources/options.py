"""The table `[source.options]`: settings that only one kind of source has."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from parquetry.errors import SettingsError
from parquetry.settings.base import Section
from parquetry.settings.errors import explain
from parquetry.sources.base import Place

Options = TypeVar("Options", bound=Section)


def options_of(place: Place, model: type[Options]) -> Options:
    """The options of a source, checked.

    Args:
        place: of the source.
        model: what its kind of source understands.

    Raises:
        SettingsError: an unknown key or an unusable value.
    """
    try:
        return model.model_validate(dict(place.options))
    except ValidationError as error:
        problems = "; ".join(explain(each, model) for each in error.errors())
        # Without pydantic's own words, which repeat values.
        raise SettingsError(f"source {place.name}: options: {problems}") from None
