"""The table `[source.options]`: settings specific to one kind of source."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from parquetry.errors import SettingsError
from parquetry.settings.base import Section
from parquetry.settings.errors import explain
from parquetry.sources.base import Place

Options = TypeVar("Options", bound=Section)


def options_of(place: Place, model: type[Options]) -> Options:
    """Return the validated options of a source.

    Args:
        place: place of the source.
        model: section with the options of its kind of source.

    Raises:
        SettingsError: an unknown key or an invalid value.
    """
    try:
        return model.model_validate(dict(place.options))
    except ValidationError as error:
        problems = "; ".join(explain(each, model) for each in error.errors())
        # Omit pydantic's own messages: they repeat values.
        raise SettingsError(f"source {place.name}: options: {problems}") from None
