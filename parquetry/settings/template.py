"""Reference of all settings, with type, default and meaning, and the file that `init` writes."""

from __future__ import annotations

import json
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from parquetry.settings.sections import DEFAULT_FILE, Settings

_LINE = 100
"""characters per comment line in the file"""
_WRITTEN_OUT = "source"
"""repeated section that `init` writes one active table of; other repeated sections appear commented out"""

_NAMES: dict[Any, tuple[str, str]] = {
    str: ("text", "texts"),
    int: ("whole number", "whole numbers"),
    float: ("number", "numbers"),
    bool: ("true or false", "true or false"),
    SecretStr: ("secret text", "secret texts"),
}
"""singular and plural names of value types"""


@dataclass(frozen=True, slots=True)
class Key:
    """Description of one setting."""

    name: str
    kind: str
    """type of the value: `whole number`"""
    limits: str
    """valid values: `1 to 64`, `"public" or "individual"`; empty for any"""
    required: bool
    default: str | None
    """TOML value; None if omitting the key has a meaning of its own"""
    example: str
    """TOML value: the default, or a typical value if there is none"""
    description: str
    """one or two sentences, with code in backquotes"""


@dataclass(frozen=True, slots=True)
class Outline:
    """Description of one section of the settings file."""

    name: str
    repeated: bool
    """True for `[[name]]`, which may appear any number of times"""
    summary: str
    keys: tuple[Key, ...]


def outline() -> tuple[Outline, ...]:
    """Describe every section and key of the settings file, in the order of the models."""
    found = []
    for name, field in Settings.model_fields.items():
        model, repeated = _section_model(field.annotation)
        summary = (model.__doc__ or "").strip()
        found.append(Outline(name, repeated, summary, tuple(_keys(model))))
    return tuple(found)


def template(sources: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the settings file for a new corpus.

    Args:
        sources: key -> value of each source to write; none for one that has to be edited.

    Returns:
        TOML with every key commented out (`#key = value`), with its default or an example, below its meaning. One
        source is active, because a corpus without a source has nothing to do.
    """
    intro = (
        f"{DEFAULT_FILE}: settings of Parquetry. A line like `#key = value` shows the default, or an example where "
        "there is none; remove the # to change it. Relative places are relative to this file. Unknown keys are errors."
    )
    blocks = [_comment(intro)]
    for section in outline():
        head = f"[[{section.name}]]" if section.repeated else f"[{section.name}]"
        more = f" Repeat {head} for each further one." if section.repeated else ""
        shown_only = section.repeated and (section.name != _WRITTEN_OUT or bool(sources))
        entries = [_entry(key, needed=key.required and not shown_only) for key in section.keys]
        blocks.append("\n".join([_comment(section.summary + more), "#" * shown_only + head, *entries]))
        if section.name == _WRITTEN_OUT:
            blocks += [_table(head, each) for each in sources]
    return "\n\n".join(blocks) + "\n"


def _table(head: str, values: Mapping[str, Any]) -> str:
    # DEL is the one character that JSON leaves as it is and TOML does not take.
    return "\n".join(
        [head, *(f"{key} = {toml_value(each)}".replace("\x7f", "\\u007f") for key, each in values.items())]
    )


def _entry(key: Key, *, needed: bool) -> str:
    mark = "" if needed else "#"
    meaning = f"{key.description} ({key.limits})" if key.limits else key.description
    return f"{_comment(meaning)}\n{mark}{key.name} = {key.example}"


def _comment(text: str) -> str:
    return textwrap.fill(text, _LINE, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def _section_model(annotation: Any) -> tuple[type[BaseModel], bool]:
    """Return the model of a section, and True if the section may be repeated."""
    if get_origin(annotation) is tuple:
        return _section_model(get_args(annotation)[0])[0], True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    raise TypeError(f"a section of the settings is a model or a tuple of one, not {annotation}")


def _keys(model: type[BaseModel]) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        required = field.is_required()
        value = field.get_default(call_default_factory=True)
        default = None if required or value is None else toml_value(value)
        example = toml_value(field.examples[0]) if field.examples else default
        if example is None:
            raise TypeError(f"{model.__name__}.{name} has neither a default nor an example")
        kind = _kind(field.annotation)
        yield Key(name, kind, _limits(field), required, default, example, field.description or "")


def _kind(annotation: Any, *, plural: bool = False) -> str:
    annotation = _without_none(annotation)
    if get_origin(annotation) is Literal:
        return "one of"
    if get_origin(annotation) is tuple:
        (item, *_) = get_args(annotation)
        return "list" if get_origin(item) is Literal else f"list of {_kind(item, plural=True)}"
    if get_origin(annotation) is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "tables" if plural else "table"
    return _NAMES[annotation][plural]


def _limits(field: FieldInfo) -> str:
    annotation = _without_none(field.annotation)
    if get_origin(annotation) is tuple:
        (annotation, *_) = get_args(annotation)
    if get_origin(annotation) is Literal:
        shown = [toml_value(value) for value in get_args(annotation)]
        return f"{', '.join(shown[:-1])} or {shown[-1]}"
    bounds = {
        name: f"{getattr(bound, name):,}"
        for bound in field.metadata
        for name in ("ge", "gt", "le")
        if hasattr(bound, name)
    }
    match bounds:
        case {"ge": least, "le": most}:
            return f"{least} to {most}"
        case {"gt": least, "le": most}:
            return f"above {least}, at most {most}"
        case _:
            return ""


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation
    (given,) = (argument for argument in get_args(annotation) if argument is not type(None))
    return given


def toml_value(value: Any) -> str:
    """Format a default or example as TOML."""
    match value:
        case bool():
            return str(value).lower()
        case date():
            return value.isoformat()
        case str():
            return json.dumps(value, ensure_ascii=False)
        case int() | float():
            return f"{value:_}" if abs(value) >= 10_000 else str(value)
        case tuple() | list():
            return "[" + ", ".join(toml_value(entry) for entry in value) + "]"
        case dict():
            return (
                "{ " + ", ".join(f"{key} = {toml_value(entry)}" for key, entry in value.items()) + " }"
                if value
                else "{}"
            )
        case _:
            raise TypeError(f"{value!r} has no form in TOML")
