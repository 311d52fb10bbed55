"""What people see of a search: results, passages and sources, in lines that fit the terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Any

import typer

from serving.answers import Answer, how_found
from serving.citations import place
from serving.output import terminal_width
from serving.passages import Passage
from storage.search import Hit

SHOWN_LINES = 4
"""of a chunk that answers"""
WIDEST_LINE = 100
"""characters; longer lines are hard to read on the widest terminal too"""
STEM_CHARACTERS = 5
"""of a word that make it the same word in another inflection, well enough to choose what to show"""
_INDENT = "    "
_MARK = "  > "
"""before lines of a passage that are of a hit"""


def print_answer(answer: Answer) -> None:
    """Print an answer: results or passages, then sources and how it came about, as far as they are shown."""
    response, shown = answer.response, answer.shown
    width = min(terminal_width(), WIDEST_LINE)
    if not response.hits:
        typer.echo("Nothing in this corpus matches.")
    if shown.context is not None:
        for passage in answer.passages:
            _print_passage(answer, passage, width)
    else:
        for rank, hit in enumerate(response.hits):
            _print_result(answer, rank, hit, width)
    if shown.citations and response.hits:
        typer.echo("Sources:")
        for reference in answer.cited.bibliography:
            typer.echo(reference.line)
    if shown.explain:
        _print_explanation(answer, width)
    what = "documents" if response.request.level == "document" else "results"
    typer.echo(f"{len(response.hits)} {what} in {response.seconds:.2f} s from version {response.version}.")


def _print_result(answer: Answer, rank: int, hit: Hit, width: int) -> None:
    marker = answer.cited.citations[rank].marker if answer.shown.citations else f"[{rank + 1}]"
    typer.echo(_filled(f"{marker} {_heading(hit)}", width))
    text, inner = hit.row["text"], width - len(_INDENT)
    if answer.shown.full:
        _print_lines(_wrapped(text, inner))
    elif answer.shown.citations:
        quotation = " ".join(answer.cited.citations[rank].snippet.split())
        _print_lines(textwrap.wrap(f'"{quotation}"', inner))
    else:
        _print_lines(_excerpt(text, answer.response.request.query, inner))
    # Unbroken, because terminals and scripts take a uri as a whole.
    uri = answer.cited.citations[rank].uri if answer.shown.citations else hit.row["uri"]
    typer.echo(f"{_INDENT}{uri} [{hit.row['start']}:{hit.row['end']}]")
    if answer.shown.explain:
        typer.echo(f"{_INDENT}{_told(hit)}")


def _print_passage(answer: Answer, passage: Passage, width: int) -> None:
    """A passage under the places of its hits, their lines marked."""
    hits = answer.response.hits
    for rank in sorted(passage.stretch.hits):
        marker = answer.cited.citations[rank].marker if answer.shown.citations else f"[{rank + 1}]"
        typer.echo(_filled(f"{marker} {_heading(hits[rank])}", width))
        if answer.shown.explain:
            typer.echo(f"{_INDENT}{_told(hits[rank])}")
    begin = passage.stretch.start
    for line in re.finditer(r"[^\n]*\n?", passage.text):
        start, end = begin + line.start(), begin + line.end()
        marked = any(start < stop and first < end for first, stop in passage.marks)
        for part in textwrap.wrap(line[0], width - len(_INDENT)) or [""] * bool(line[0]):
            typer.echo(f"{_MARK if marked else _INDENT}{part}".rstrip())
    uri = hits[passage.stretch.hits[0]].row["uri"]
    typer.echo(f"{_INDENT}{uri} [{begin}:{passage.stretch.end}]")


def _heading(hit: Hit) -> str:
    title = hit.row["title"]
    shown = f"{title} ({place(hit.row)})" if title else place(hit.row)
    return f"{shown}  {hit.score:.3f}"


def _filled(text: str, width: int) -> str:
    return textwrap.fill(text, width, subsequent_indent=_INDENT)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(f"{_INDENT}{line}".rstrip())


def _wrapped(text: str, width: int) -> list[str]:
    """All lines of a chunk, the long ones wrapped."""
    return [part for line in text.splitlines() for part in textwrap.wrap(line, width) or [""]]


def _excerpt(text: str, query: str, width: int) -> list[str]:
    """The lines of a chunk, a few in a row, that hold most of the query's words in whatever inflection."""
    lines = textwrap.wrap(" ".join(text.split()), width)
    stems = {word[:STEM_CHARACTERS] for word in re.findall(r"\w+", query.casefold()) if len(word) > 3}
    found = [{stem for stem in stems if stem in line.casefold()} for line in lines]
    last = max(0, len(lines) - SHOWN_LINES)
    start = max(range(last + 1), key=lambda line: (len(set().union(*found[line : line + SHOWN_LINES])), -line))
    shown = lines[start : start + SHOWN_LINES]
    before, after = ["..."] * (start > 0), ["..."] * (start < last)
    return [*before, *shown, *after]


def _told(hit: Hit) -> str:
    """`found by vector (1st, 0.831) and text (3rd, 7.215)`."""
    found = how_found(hit)
    reranked, aged = found.pop("rerank"), found.pop("recency", None)
    sides = [
        f"{side} ({_ordinal(told['rank'])}, {told['score']:.3f})" for side, told in found.items() if told is not None
    ]
    again = f"; reranked ({reranked['score']:.3f})" if reranked else ""
    age = f"; {max(aged['days'], 0):.0f} days old" if aged else ""
    return f"found by {' and '.join(sides)}{again}{age}"


def _ordinal(rank: int) -> str:
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank}{ending}"


def _print_explanation(answer: Answer, width: int) -> None:
    how = answer.explanation
    index = "an index made in memory" if how["index"] == "memory" else "the index"
    of = {"documents": "documents", "entries": "entries", "both": "documents and entries"}
    asked = of[answer.response.request.filters.what]
    lines = [f"Searched: {how['chunks']} chunks of {how['documents']} {asked} in {index} of version {how['version']}."]
    if how["vectors"]:
        lines.append(f"Vectors: {how['vectors']}, {how['vector_candidates']} compared in full.")
    if answer.response.request.mode != "vector":
        lines.append(f"Words, and in how many chunks: {_counted(how['terms'])}.")
        if how["ignored"]:
            lines.append(f"Left out, because they say nothing: {', '.join(how['ignored'])}.")
    if "fusion" in how:
        lines.append(
            f"Fused: {how['fusion']}, {how['vector_weight']:g} on vectors, the best {how['depth']} of each side."
        )
    if "rerank" in how:
        lines.append(_reranked(how["rerank"], cached=how["cached"]))
    if "half_life_days" in how:
        lines.append(f"Recency: a score counts half after {how['half_life_days']:g} days, a quarter after twice that.")
    seconds = ", ".join(f"{stage} {value:.3f}" for stage, value in how["seconds"].items())
    lines.append("From the cache." if how["cached"] else f"Seconds: {seconds}.")
    for line in lines:
        typer.echo(_filled(line, width))


def _reranked(judged: dict[str, Any], *, cached: bool) -> str:
    told = f"Reranked: {judged['candidates']} candidates by {judged['by']}"
    if cached or not judged["calls"]:
        return f"{told}."
    calls = "1 call" if judged["calls"] == 1 else f"{judged['calls']} calls"
    cost = f", ${judged['cost_usd']:.6f}" if judged["cost_usd"] else ""
    return f"{told}, {calls}, {judged['tokens']} tokens{cost}."


def _counted(terms: dict[str, int]) -> str:
    return ", ".join(f"{term} {count}" for term, count in terms.items()) or "none that is in the corpus"
