"""Terminal output of entries, decisions and undo."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from parquetry.plural import counted
from parquetry.printing import tell, tell_wrapped
from parquetry.serving.cli.answer_output import WIDEST_LINE
from parquetry.serving.cli.output import terminal_width
from parquetry.serving.search.entry_reading import EntryStory, Row
from parquetry.storage.entries.undoing import Undone

_INDENT = "    "
SHOWN_TEXT = 70
"""characters shown of an entry mentioned beside another"""


def print_entry(entry: Row, opposite: Mapping[str, str], story: EntryStory | None, texts: Mapping[str, str]) -> None:
    """Print an entry, its contradictions, and its history if requested.

    Args:
        entry: row of the view `entries`.
        opposite: texts of the live entries it contradicts, by id.
        story: history of the entry; None to omit it.
        texts: texts of the entries that the story names, by id.
    """
    _print(f"[{entry['kind']}] {entry['text']}", "", _INDENT)
    sessions = entry["sessions"]
    told = [
        level(entry),
        counted(sessions, "session"),
        f"last said {entry['last_said']:%Y-%m-%d}",
        *([f"opposed since {entry['valid_until']:%Y-%m-%d}"] if entry["valid_until"] else []),
        f"{entry['confidence']:.2f} sure",
        *([", ".join(entry["tags"])] if entry["tags"] else []),
    ]
    _print(", ".join(told), _INDENT)
    tell(f"{_INDENT}entry:{entry['entry_id']}")
    for other in entry["contradicts"]:
        if other in opposite:
            _print(f"contradicts {_quoted(opposite[other])}", _INDENT)
    if story is not None:
        for decision in story.decisions:
            print_decision(decision, texts, _INDENT)
        if story.others:
            _print(f"and {counted(story.others, 'session')} of others", _INDENT)


def print_decision(decision: Row, texts: Mapping[str, str], indent: str = "") -> None:
    """Print a decision: its kind, result, reason and origin."""
    undone = f", undone by {decision['undone_by']}" if decision["undone_by"] else ""
    reason = f" ({decision['reason']})" if decision["reason"] else ""
    heading = f"{decision['at']:%Y-%m-%d %H:%M} {decision['kind']}{reason} by {decision['judge']}{undone}"
    tell(f"{indent}{decision['decision_id']} {heading}")
    inner = indent + _INDENT
    if decision["text"]:
        _print(_quoted(decision["text"]), inner)
    named = {
        "undoes": [decision["undoes"]] if decision["undoes"] else [],
        "says": _named([decision["entry_id"]], texts) if decision["kind"] in ("merged", "existing") else [],
        "replaces": _named(decision["retires"], texts) if decision["kind"] != "undone" else [],
        "takes out": _named(decision["retires"], texts) if decision["kind"] == "undone" else [],
        "brings back": _named(decision["adds"], texts) if decision["kind"] == "undone" else [],
        "contradicts" if decision["kind"] == "contradicts" else "stays apart from": _named(decision["links"], texts),
    }
    for what, them in named.items():
        for each in them:
            if each != _quoted(decision["text"] or ""):
                _print(f"{what} {each}", inner)
    if decision["reasoning"]:
        _print(f"because: {decision['reasoning']}", inner)
    if decision["session_uri"]:
        evidence = f" ({', '.join(decision['evidence'])})" if decision["evidence"] else ""
        tell(f"{inner}from {decision['session_uri']}{evidence}")


def print_undone(done: Undone) -> None:
    """Print the entries that returned, those that left, and others affected."""
    decision = done.undoing.decision
    for what, entries in (("Back", decision.adds), ("Gone", decision.retires)):
        for entry in entries:
            _print(f"{what}: {done.texts.get(entry, entry)}", "", _INDENT)
    if not (decision.adds or decision.retires):
        stays = done.texts.get(decision.entry_id or "")
        _print(f"Stays, because other decisions say it: {stays}" if stays else "No entry comes back or leaves.", "")
    for later in done.undoing.affected:
        said = done.texts.get(later.entry_id or "", later.text)
        _print(f"Also affected: {later.kind} {later.decision_id}, which builds on it: {said}", "")
    tell(f"Decision {done.target.decision_id} is undone by {decision.decision_id}; version {done.version}.")
    tell(f"To take that back: parquetry undo {decision.decision_id}")


def level(row: Row) -> str:
    """Describe the audience of an entry."""
    if row["visibility"] == "organization":
        return f"for {row['org_id']}"
    return f"for {row['user_id']} alone" if row["visibility"] == "individual" else "public"


def _named(entries: Sequence[str | None], texts: Mapping[str, str]) -> list[str]:
    return [_quoted(texts[entry]) for entry in entries if entry is not None and entry in texts]


def _quoted(text: str) -> str:
    return f'"{textwrap.shorten(text, SHOWN_TEXT, placeholder="...")}"'


def _print(text: str, indent: str, hanging: str | None = None) -> None:
    width = min(terminal_width(), WIDEST_LINE)
    hanging = indent if hanging is None else hanging
    tell_wrapped(" ".join(text.split()), width, first=indent, hanging=hanging)
