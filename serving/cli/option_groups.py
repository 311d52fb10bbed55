"""Groups of options: a command takes a dataclass, and the command line has an option for each of its fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of a command whose type is a dataclass by the fields of that dataclass.

    Args:
        command: command with parameters for Typer; the annotations of the dataclasses' fields are for Typer, too.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        each.name: each.annotation for each in signature.parameters.values() if is_dataclass(each.annotation)
    }

    @wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: group(**{each.name: values.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **made)

    parameters = [each for parameter in signature.parameters.values() for each in _expanded(parameter)]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _expanded(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if not is_dataclass(parameter.annotation):
        yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        return
    types = get_type_hints(parameter.annotation, include_extras=True)
    for each in fields(parameter.annotation):
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        yield inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[each.name])
