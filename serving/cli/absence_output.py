"""Output of `search --why-not`: why a document is not among the results."""

from __future__ import annotations

from collections.abc import Sequence

from parquetry.errors import SettingsError
from parquetry.printing import tell, tell_wrapped
from parquetry.serving.cli.answer_output import WIDEST_LINE
from parquetry.serving.cli.output import print_json, terminal_width
from parquetry.serving.search.absences import visible_document, why_not
from parquetry.serving.search.explanations import Standing
from parquetry.serving.search.service import Reader, SearchRequest


def print_absence(reader: Reader, requests: Sequence[SearchRequest], name: str, *, as_json: bool) -> None:
    """Print why a document is not among the results of a search, or where it is.

    Args:
        reader: reader of the corpus.
        requests: the search.
        name: id, uri, path or file name of the document.
        as_json: True to print one JSON object.

    Raises:
        SettingsError: there are several searches, or the name means several documents that the caller may see.
    """
    if len(requests) > 1:
        raise SettingsError("--why-not explains one query; leave --queries out")
    (request,) = requests
    row = visible_document(reader, request.filters.caller, name)
    document_id = name if row is None else row["document_id"]
    found = why_not(reader, request, document_id, sees=lambda _: True)
    if as_json:
        print_json(found.as_json())
        return
    shown = name if row is None else row["path"]
    width = min(terminal_width(), WIDEST_LINE)
    tell_wrapped(f"{shown}: {found.verdict}: {found.detail}.", width, hanging="    ")
    for side, standing in (("vector", found.vector), ("keywords", found.text)):
        if standing is not None:
            tell(f"    by {side}: {_told(standing)}")
    tell(f"Version {found.version}.")


def _told(standing: Standing) -> str:
    return f"rank {standing.rank:,}, score {standing.score:.3f}"
