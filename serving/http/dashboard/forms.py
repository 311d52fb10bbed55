"""Forms that pages send: only those that this service made, for the visitor who loaded them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import FormData, UploadFile

from parquetry.serving.access.origin import write_allowed
from parquetry.serving.http.callers import check_again, resources_of
from parquetry.serving.http.dashboard.html import visit
from parquetry.serving.http.problems import Problem
from parquetry.serving.web.form_tokens import FIELD, HEADER, is_form_token

MOST_FILES = 100
"""files of one form; scripts send each in a form of its own"""
_MOST_FIELDS = 100
"""a list may have each of its documents selected"""


async def _checked(request: Request) -> AsyncIterator[FormData]:
    """Yield the fields of a form, whose files are closed when it is answered.

    Raises:
        Problem: another page sent it, or it was loaded in another visit.
    """
    headers = request.headers
    own = write_allowed("POST", headers.get("origin"), headers.get("host"), headers.get("sec-fetch-site"), ())
    resources = resources_of(request)
    known = visit(request, resources)
    # Before the files of a form are read.
    given = headers.get(HEADER)
    if not own or known is None or (given is not None and not is_form_token(given, known)):
        raise _expired()
    most = resources.settings.serve.max_document_bytes
    async with request.form(max_files=MOST_FILES, max_fields=_MOST_FIELDS, max_part_size=most) as fields:
        if given is None and not is_form_token(text(fields, FIELD), known):
            raise _expired()
        if hasattr(request.state, "principal"):
            check_again(request)
        yield fields


def _expired() -> Problem:
    return Problem(403, "form-expired", "this form is out of date; go back, load the page again, and send it once more")


CheckedForm = Annotated[FormData, Depends(_checked)]
"""the fields of a form; stands behind the caller, whose right is checked first"""


def text(fields: FormData, name: str) -> str:
    """Return a field; empty if it is missing."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def files(fields: FormData, name: str) -> list[UploadFile]:
    """Return the files of a field; a field that was left empty has none."""
    return [each for each in fields.getlist(name) if isinstance(each, UploadFile) and each.filename]
