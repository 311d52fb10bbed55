"""Signing in with a token, and out again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from parquetry.serving.access.gate import Arrival
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.refusals import NotAuthenticated
from parquetry.serving.http.admission import record_refusal
from parquetry.serving.http.callers import Parts
from parquetry.serving.http.dashboard.forms import CheckedForm, text
from parquetry.serving.http.dashboard.html import keep_visit, page, redirect, visit
from parquetry.serving.http.dashboard.paths import PATHS, SEARCH, SIGN_IN, SIGN_OUT
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.resources import Resources

router = APIRouter(include_in_schema=False)
_LONGEST = 2000
"""characters of the page to go on to"""


@router.get(SIGN_IN)
def show_sign_in(request: Request, next: Annotated[str, Query(max_length=_LONGEST)] = "/") -> Response:
    """Show the form to sign in."""
    return page(request, "sign_in.html", next=_own(next), refusal="", reason="")


@router.post(SIGN_IN)
async def sign_in(request: Request, parts: Parts, fields: CheckedForm) -> Response:
    """Begin a session of a token's bearer."""
    token, following = text(fields, "token").strip(), _own(text(fields, "next"))
    try:
        principal = await in_thread(_bearer, request, parts, token)
    except NotAuthenticated as refusal:
        address = None if request.client is None else request.client.host
        record_refusal(parts, address, refusal, f"POST {SIGN_IN}")
        return page(request, "sign_in.html", 401, next=following, refusal=refusal.detail, reason=refusal.reason)
    # A new value: one that was known before signing in must not become a session.
    await _end(request, parts)
    value = await in_thread(parts.sessions.begin, principal)
    answer = redirect(SEARCH if following == "/" and not principal.may("read") else following)
    keep_visit(answer, request, parts, value)
    return answer


@router.post(SIGN_OUT)
async def sign_out(request: Request, parts: Parts, _: CheckedForm) -> Response:
    """End a session."""
    await _end(request, parts)
    answer = redirect(SIGN_IN)
    answer.delete_cookie(parts.gate.cookie, httponly=True, samesite="strict")
    return answer


def _bearer(request: Request, parts: Resources, token: str) -> Principal:
    """Return the bearer of a token, which is checked as one in a header is."""
    arrival = Arrival.of("POST", None, [*_without_credentials(request), (b"x-parquetry-token", token.encode())])
    return parts.gate.admit(arrival)


def _without_credentials(request: Request) -> list[tuple[bytes, bytes]]:
    credentials = (b"authorization", b"x-parquetry-token")
    return [(name, value) for name, value in request.scope["headers"] if name.lower() not in credentials]


async def _end(request: Request, parts: Resources) -> None:
    known = visit(request, parts)
    if known is not None:
        await in_thread(parts.sessions.end, known)


def _own(place: str) -> str:
    """Return the page to go on to; the first one unless it is one of the dashboard's own."""
    path = place.partition("?")[0]
    within = any(path == each or (each != "/" and path.startswith(f"{each}/")) for each in PATHS)
    # A browser takes `//host` and `/\\host` for another site, and drops line ends.
    return place if within and place.isprintable() and "\\" not in place and not place.startswith("//") else "/"
