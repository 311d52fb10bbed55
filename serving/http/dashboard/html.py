"""Answers in HTML: the frame of every page, the headers that bound what it may do, and the cookie of a visit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.types import Scope

from parquetry.serving.access.principals import Principal
from parquetry.serving.access.sessions import SESSION_SECONDS, new_visit, visit_of
from parquetry.serving.http.dashboard.paths import (
    ADD,
    ADMIN,
    ASK,
    DOCUMENTS,
    ENTRIES,
    MAP,
    QUALITY,
    RUNS,
    SEARCH,
)
from parquetry.serving.service.resources import Resources
from parquetry.serving.web.form_tokens import form_token
from parquetry.serving.web.rendering import render

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`, with which browsers send forms without their origin.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""headers of every page; what it shows is kept by no cache"""


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """A view that the caller may open."""

    name: str
    path: str
    current: bool


@dataclass(frozen=True, slots=True)
class PageFrame:
    """The parts that all pages have."""

    items: tuple[NavigationItem, ...]
    who: str
    """name of the caller; empty on pages without one"""
    signed_in: bool
    """True if a session can be ended"""
    form_token: str
    may_write: bool


_ELSEWHERE = frozenset({"cross-site", "same-site"})
"""values of `Sec-Fetch-Site` for links on pages of others"""
NO_FRAME = PageFrame((), "", signed_in=False, form_token="", may_write=False)


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page for the maker of a request, with the cookie of the visit if it is new.

    Args:
        request: the request, which was admitted.
        template: name of the template.
        status: HTTP status.
        **values: what the template shows.
    """
    resources: Resources = request.app.state.resources
    known = visit(request, resources)
    if known is None and request.headers.get("sec-fetch-site") in _ELSEWHERE:
        # From a page of another site the browser sends no cookie, and a new one would end a session that there is.
        return HTMLResponse(render("arrival.html", frame=NO_FRAME), status, dict(HEADERS))
    made = known or new_visit()
    principal: Principal | None = getattr(request.state, "principal", None)
    framed = _frame(request.scope, resources, principal, made)
    answer = HTMLResponse(render(template, frame=framed, **values), status, dict(HEADERS))
    if known is None:
        keep_visit(answer, request, resources, made)
    return answer


def part(template: str, **values: Any) -> str:
    """Return a part of a page, for a script that puts it there."""
    return render(template, **values)


def visit(request: Request, resources: Resources) -> str | None:
    """Return the value of the visitor's cookie; None if there is none."""
    return visit_of(request.headers.getlist("cookie"), resources.gate.cookie)


def keep_visit(answer: HTMLResponse | RedirectResponse, request: Request, resources: Resources, value: str) -> None:
    """Set the cookie of a visit: for this service alone, out of reach of scripts and of pages of other sites."""
    forwarded = request.headers.get("x-forwarded-proto", "").strip().lower()
    answer.set_cookie(
        resources.gate.cookie,
        value,
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure="https" in (request.url.scheme, forwarded),
    )


def redirect(path: str) -> RedirectResponse:
    """Return the answer to a form that was carried out: the browser loads another page."""
    return RedirectResponse(path, 303, dict(HEADERS))


def _frame(scope: Scope, resources: Resources, principal: Principal | None, value: str) -> PageFrame:
    token = form_token(value)
    if principal is None:
        return PageFrame((), "", signed_in=False, form_token=token, may_write=False)
    may_write = principal.may("write") and not resources.settings.serve.read_only
    views = (
        ("Overview", "/", principal.may("read")),
        ("Search", SEARCH, principal.may("search")),
        ("Ask", ASK, principal.may("search")),
        ("Documents", DOCUMENTS, principal.may("read")),
        ("Add", ADD, may_write),
        ("Entries", ENTRIES, principal.may("read")),
        # Runs name documents of everybody.
        ("Runs", RUNS, principal.may("admin") and principal.sees_everything),
        ("Map", MAP, principal.may("read")),
        ("Quality", QUALITY, principal.may("read")),
        ("Admin", ADMIN, principal.may("admin") and principal.sees_everything),
    )
    path: str = scope["path"]
    items = tuple(
        NavigationItem(name, place, path == place or (place != "/" and path.startswith(f"{place}/")))
        for name, place, allowed in views
        if allowed
    )
    if principal.operator:
        return PageFrame(items, "This machine", signed_in=False, form_token=token, may_write=may_write)
    who = principal.user_id or principal.org_id or f"Token {principal.token_id}"
    return PageFrame(items, who, signed_in=True, form_token=token, may_write=may_write)
