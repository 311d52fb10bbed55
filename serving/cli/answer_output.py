"""Terminal output of a search: results, passages and sources, wrapped to the terminal's width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Any

from parquetry.extract.media_types import is_source_code
from parquetry.plural import counted
from parquetry.printing import tell, tell_text, tell_wrapped
from parquetry.serving.cli.output import terminal_width
from parquetry.serving.search.answers import Answer
from parquetry.serving.search.citations import Citation, place
from parquetry.serving.search.excerpts import excerpt, wrapped
from parquetry.serving.search.passages import Passage
from parquetry.storage.search.searcher import Hit

ALSO_IN_NAMED = 3
"""maximum number of other places named per text; the rest are counted"""
WIDEST_LINE = 100
"""characters; longer lines are hard to read even on a wide terminal"""
_INDENT = "    "
_MARK = "  > "
"""prefix of passage lines that belong to a hit"""


def print_answer(answer: Answer) -> None:
    """Print an answer: results or passages, then the sources and the explanation if requested."""
    response, shown = answer.response, answer.shown
    width = min(terminal_width(), WIDEST_LINE)
    if not response.hits:
        tell("Nothing in this corpus matches.")
    if shown.context is not None:
        for passage in answer.passages:
            _print_passage(answer, passage, width)
    else:
        for rank, hit in enumerate(response.hits):
            _print_result(answer, rank, hit, width)
    if shown.citations and response.hits:
        tell("Sources:")
        for reference in answer.cited.bibliography:
            tell(reference.line)
    if shown.explain:
        _print_explanation(answer, width)
    found = counted(len(response.hits), "document" if response.request.level == "document" else "result")
    tell(f"{found} in {response.seconds:.2f} s from version {response.version}.")


def _print_result(answer: Answer, rank: int, hit: Hit, width: int) -> None:
    marker = answer.cited.citations[rank].marker if answer.shown.citations else f"[{rank + 1}]"
    tell_wrapped(f"{marker} {_heading(hit)}", width, hanging=_INDENT)
    text, inner = hit.row["text"], width - len(_INDENT)
    if answer.shown.full:
        _print_lines(wrapped(text, inner))
    elif answer.shown.citations:
        _print_lines(_quotation(answer.cited.citations[rank], inner))
    else:
        query, language = answer.response.request.query, answer.settings.language
        code = is_source_code(hit.row["media_type"] or "")
        _print_lines(excerpt(text, query, inner, code=code, language=language))
    # Unbroken, because terminals and scripts need the URI in one piece.
    uri = answer.cited.citations[rank].uri if answer.shown.citations else hit.row["uri"]
    tell(f"{_INDENT}{uri} [{hit.row['start']}:{hit.row['end']}]")
    _print_also_in(hit, width)
    if answer.shown.explain:
        tell(f"{_INDENT}{_told(answer, hit)}")


def _print_passage(answer: Answer, passage: Passage, width: int) -> None:
    """Print a passage below the places of its hits, with their lines marked."""
    hits = answer.response.hits
    for rank in sorted(passage.stretch.hits):
        marker = answer.cited.citations[rank].marker if answer.shown.citations else f"[{rank + 1}]"
        tell_wrapped(f"{marker} {_heading(hits[rank])}", width, hanging=_INDENT)
        _print_also_in(hits[rank], width)
        if answer.shown.explain:
            tell(f"{_INDENT}{_told(answer, hits[rank])}")
    begin = passage.stretch.start
    for line in re.finditer(r"[^\n]*\n?", passage.text):
        start, end = begin + line.start(), begin + line.end()
        marked = any(start < stop and first < end for first, stop in passage.marks)
        for part in textwrap.wrap(line[0], width - len(_INDENT)) or [""] * bool(line[0]):
            tell_text(f"{_MARK if marked else _INDENT}{part}".rstrip())
    uri = hits[passage.stretch.hits[0]].row["uri"]
    tell(f"{_INDENT}{uri} [{begin}:{passage.stretch.end}]")


def _print_also_in(hit: Hit, width: int) -> None:
    """Print `also in: people/leave.md, manual.pdf page 3 (+5)`."""
    if not hit.also_in:
        return
    named = [
        row["path"] if row["page"] is None else f"{row['path']} {row['kind']} {row['page']}"
        for row in hit.also_in[:ALSO_IN_NAMED]
    ]
    more = f" (+{len(hit.also_in) - len(named)})" if len(named) < len(hit.also_in) else ""
    tell_wrapped(f"also in: {', '.join(named)}{more}", width, first=_INDENT, hanging=2 * _INDENT)


def _heading(hit: Hit) -> str:
    title = hit.row["title"]
    shown = f"{title} ({place(hit.row)})" if title else place(hit.row)
    relevance = "" if hit.relevance is None else f" (relevance {hit.relevance:.2f})"
    return f"{shown}  {hit.score:.3f}{relevance}"


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        tell_text(f"{_INDENT}{line}".rstrip())


def _quotation(citation: Citation, width: int) -> list[str]:
    """Return the quoted sentence; for a table row, below its column names."""
    if citation.header is None:
        return textwrap.wrap(f'"{" ".join(citation.snippet.split())}"', width)
    return [*textwrap.wrap(citation.header, width), *textwrap.wrap(citation.snippet, width)]


def _told(answer: Answer, hit: Hit) -> str:
    """Return `found by vector (1st, 0.831) and text (3rd, 7.215, of which identity 1.204; in headings: leav)`."""
    found = answer.how_found(hit)
    reranked, aged = found.pop("rerank"), found.pop("recency", None)
    sides = [
        f"{side} ({_ordinal(told['rank'])}, {told['score']:.3f}{_identity(told)}{_headings(told)})"
        for side, told in found.items()
        if told is not None
    ]
    again = f"; reranked ({reranked['score']:.3f})" if reranked else ""
    age = f"; {max(aged['days'], 0):.0f} days old" if aged else ""
    return f"found by {' and '.join(sides)}{again}{age}"


def _identity(told: dict[str, Any]) -> str:
    return f", of which identity {told['identity']:.3f}" if told.get("identity") else ""


def _headings(told: dict[str, Any]) -> str:
    return f"; in headings: {', '.join(told['headings'])}" if told.get("headings") else ""


def _ordinal(rank: int) -> str:
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank}{ending}"


def _print_explanation(answer: Answer, width: int) -> None:
    how = answer.explanation
    index = "an index made in memory" if how["index"] == "memory" else "the index"
    of = {"documents": ("document",), "entries": ("entry",), "both": ("document or entry", "documents and entries")}
    asked = counted(how["documents"], *of[answer.response.request.filters.what])
    searched = f"{counted(how['chunks'], 'chunk')} of {asked}"
    lines = [f"Searched: {searched} in {index} of version {how['version']}."]
    if how["vectors"]:
        lines.append(f"Vectors: {how['vectors']}, {how['vector_candidates']} compared in full.")
    if answer.response.request.mode != "vector":
        lines.append(f"Words, and in how many chunks: {_terms(how['terms'])}.")
        if how["ignored"]:
            lines.append(f"Left out, because they say nothing: {', '.join(how['ignored'])}.")
    if "fusion" in how:
        lines.append(
            f"Fused: {how['fusion']}, {how['vector_weight']:g} on vectors, the best {how['depth']} of each side."
        )
    if "rerank" in how:
        lines.append(_reranked(how["rerank"], cached=how["cached"]))
    if how["uncalibrated"]:
        models = ", ".join(how["uncalibrated"])
        scores, command = ("scores", "calibrate --rerank") if "rerank" in how else ("cosine similarities", "calibrate")
        lines.append(f"Relevance: {scores} of {models} as they are; `parquetry {command}` measures them.")
    if "half_life_days" in how:
        lines.append(f"Recency: a score counts half after {how['half_life_days']:g} days, a quarter after twice that.")
    seconds = ", ".join(f"{stage} {value:.3f}" for stage, value in how["seconds"].items())
    lines.append("From the cache." if how["cached"] else f"Seconds: {seconds}.")
    for line in lines:
        tell_wrapped(line, width, hanging=_INDENT)


def _reranked(judged: dict[str, Any], *, cached: bool) -> str:
    told = f"Reranked: {counted(judged['candidates'], 'candidate')} by {judged['by']}"
    if cached or not judged["calls"]:
        return f"{told}."
    cost = f", ${judged['cost_usd']:.6f}" if judged["cost_usd"] else ""
    return f"{told}, {counted(judged['calls'], 'call')}, {counted(judged['tokens'], 'token')}{cost}."


def _terms(terms: dict[str, int]) -> str:
    return ", ".join(f"{term} {count}" for term, count in terms.items()) or "none that is in the corpus"
