"""HTML of pages: templates in which every value is escaped, and the forms of numbers, sizes and times."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from parquetry.plural import counted, size_of
from parquetry.printing import visible, visible_text
from parquetry.serving.web.assets import assets

_TEMPLATES = Path(__file__).parent / "templates"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def render(template: str, **values: Any) -> str:
    """Return the HTML of a template.

    Args:
        template: name of a file in `templates`.
        **values: what it shows.
    """
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    # Names and texts of strangers: no character that hides or turns others reaches a page.
    made.filters |= {
        "line": lambda text: visible(str(text)),
        "text": lambda text: visible_text(str(text)),
        "number": lambda number: f"{number:,}",
        "size": lambda size: size_of(size or 0),
        "ago": lambda at: ago(at, datetime.now(UTC)),
        "moment": moment,
    }
    made.globals |= {"asset": lambda name: assets()[name].path, "counted": counted}
    return made


def ago(at: datetime, now: datetime) -> str:
    """Return the time since a moment in words: `just now`, `5 minutes ago`, `3 days ago`, or a date."""
    seconds = (now - at).total_seconds()
    if seconds < _MINUTE:
        return "just now"
    if seconds < _HOUR:
        return f"{counted(int(seconds // _MINUTE), 'minute')} ago"
    if seconds < _DAY:
        return f"{counted(int(seconds // _HOUR), 'hour')} ago"
    if seconds < 30 * _DAY:
        return f"{counted(int(seconds // _DAY), 'day')} ago"
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def moment(at: datetime) -> str:
    """Return a time in UTC, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
