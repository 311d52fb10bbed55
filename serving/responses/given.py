"""Values of a request with their places in it, so that every refusal names the parameter at fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from parquetry.serving.access.refusals import UnusableParameter

_LONGEST_SHOWN = 80
"""characters of a value that a message repeats"""


@dataclass(frozen=True, slots=True)
class Given:
    """A value of a JSON request; null and a missing value are the same."""

    value: Any
    place: str
    """as OpenAI names parameters: `input[0].content`; empty for the whole body"""

    def __bool__(self) -> bool:
        return self.value is not None

    def member(self, name: str) -> Given:
        """Return a member of an object.

        Raises:
            UnusableParameter: the value is no object.
        """
        return Given(self.object().get(name), f"{self.place}.{name}" if self.place else name)

    def object(self) -> Mapping[str, Any]:
        """Return the object; likewise for the other types below.

        Raises:
            UnusableParameter: it is something else.
        """
        if not isinstance(self.value, dict):
            raise self.wrong_type("an object")
        return self.value

    def items(self) -> list[Given]:
        """Return the values of a list."""
        if not isinstance(self.value, list):
            raise self.wrong_type("a list")
        return [Given(value, f"{self.place}[{index}]") for index, value in enumerate(self.value)]

    def text(self, most: int | None = None) -> str:
        """Return the text.

        Args:
            most: maximum characters.
        """
        if not isinstance(self.value, str):
            raise self.wrong_type("a string")
        if most is not None and len(self.value) > most:
            raise self.invalid(f"has {len(self.value)} characters; at most {most} are possible")
        return self.value

    def flag(self) -> bool:
        """Return the boolean."""
        if not isinstance(self.value, bool):
            raise self.wrong_type("a boolean")
        return self.value

    def whole(self, least: int, most: int | None = None) -> int:
        """Return the whole number, within its bounds."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong_type("an integer")
        self._check_bounds(self.value, least, most)
        return self.value

    def number(self, least: float, most: float) -> float:
        """Return the number, within its bounds."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self.wrong_type("a number")
        self._check_bounds(self.value, least, most)
        return self.value

    def choice(self, *allowed: str) -> str:
        """Return one of several words."""
        if self.text() not in allowed:
            raise self.invalid(f"is {self.shown!r}; possible values: {', '.join(allowed)}")
        return self.text()

    @property
    def shown(self) -> str:
        """The value as a message repeats it."""
        text = str(self.value)
        return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."

    def refused(self, fault: str) -> UnusableParameter:
        """Return the refusal of what OpenAI's API can do and this service cannot.

        Args:
            fault: rest of the sentence that begins with the parameter's name; likewise below.
        """
        return UnusableParameter("unsupported-parameter", f"{self._named} {fault}", self.place or None)

    def invalid(self, fault: str) -> UnusableParameter:
        """Return the refusal of a value that is not possible."""
        return UnusableParameter("invalid-value", f"{self._named} {fault}", self.place or None)

    def unknown(self) -> UnusableParameter:
        """Return the refusal of a parameter that the API does not have."""
        return UnusableParameter("unknown-parameter", f"{self._named} is no parameter of this API", self.place or None)

    def wrong_type(self, wanted: str) -> UnusableParameter:
        """Return the refusal of a value that has another type, or is missing."""
        if self.value is None:
            fault = f"{self._named} is missing; it has to be {wanted}"
            return UnusableParameter("missing-required-parameter", fault, self.place or None)
        return self.invalid(f"has to be {wanted}")

    @property
    def _named(self) -> str:
        return self.place or "the body"

    def _check_bounds(self, value: float, least: float, most: float | None) -> None:
        if value < least or (most is not None and value > most):
            bounds = f"at least {least:g}" if most is None else f"between {least:g} and {most:g}"
            raise self.invalid(f"is {value:g}; it has to be {bounds}")
