"""Base class and common bounds of all settings sections."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, SecretStr, model_validator

from parquetry.known_secrets import announce, secrets_in

LONGEST_WAIT = 24 * 3600
"""seconds; maximum of every timeout"""
MOST_BYTES = 1024**4
"""maximum bytes of a document or a batch"""
HIGHEST_PRICE = 1_000_000
"""US dollars per million tokens"""
HIGHEST_BUDGET = 1_000_000_000
"""US dollars"""

BY_VARIABLE = "env:"
"""beginning of an option whose value is that of an environment variable, which it names"""


class Section(BaseModel):
    """Base of all sections: frozen, and unknown keys are errors. Its secrets are registered for masking."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="after")
    def _announce_secrets(self) -> Self:
        for name in type(self).model_fields:
            value = getattr(self, name)
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, SecretStr):
                    announce(each.get_secret_value())
            # Names of variables are no secrets, and messages about them have to name them.
            announce(*(each for each in secrets_in({name: value}) if not each.startswith(BY_VARIABLE)))
        return self
