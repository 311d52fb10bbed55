"""Pages for the operator: tokens made and revoked, audit events, and settings."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from parquetry.errors import SettingsError
from parquetry.serving.access.audit import EVENTS, AuditEvent
from parquetry.serving.access.principals import RIGHTS, Principal
from parquetry.serving.access.recent_events import recent_events
from parquetry.serving.access.refusals import Forbidden, NotVisible
from parquetry.serving.access.tokens import Token
from parquetry.serving.http.callers import AdminCaller, Parts
from parquetry.serving.http.dashboard.forms import CheckedForm, text
from parquetry.serving.http.dashboard.html import page, redirect
from parquetry.serving.http.dashboard.paths import ADMIN
from parquetry.serving.service.awaiting import in_thread
from parquetry.serving.service.resources import Resources
from parquetry.serving.web.admin import LIFETIMES, expiry_of, listed_tokens, shown_event, shown_settings

router = APIRouter(include_in_schema=False)
MOST_EVENTS = 100
TokenId = Annotated[str, Path(max_length=64)]
Name = Annotated[str, Query(max_length=255)]


def _demand_operator(caller: Principal) -> None:
    """Refuse an administrator of a part of the corpus: tokens, events and settings are of the whole service.

    Raises:
        Forbidden: the caller is one.
    """
    if not caller.sees_everything:
        raise Forbidden(
            "right-missing",
            "these pages are about the whole service: they need a token without user, organization and namespaces",
        )


@router.get(ADMIN)
def show_tokens(request: Request, caller: AdminCaller, parts: Parts, every: Name = "") -> Response:
    """Show the tokens, and the form for a new one."""
    _demand_operator(caller)
    return _tokens_page(request, parts, every=bool(every))


def _tokens_page(
    request: Request, parts: Resources, status: int = 200, *, every: bool = False, **values: Any
) -> Response:
    listed = listed_tokens(parts.tokens.list(), datetime.now(UTC))
    active = [each for each in listed if each.state == "active"]
    given = {"made": None, "plain": "", "refusal": "", "fields": {}, **values}
    return page(
        request,
        "tokens.html",
        status,
        tokens=listed if every else active,
        ended=len(listed) - len(active),
        every=every,
        rights=RIGHTS,
        lifetimes=tuple(LIFETIMES),
        read_only=parts.settings.serve.read_only,
        **given,
    )


@router.post(f"{ADMIN}/tokens")
async def create_token(request: Request, caller: AdminCaller, parts: Parts, fields: CheckedForm) -> Response:
    """Create a token; the page that answers is the only one that shows it."""
    _demand_operator(caller)
    given = {name: text(fields, name).strip() for name in ("name", "user", "org", "namespaces", "expires")}
    rights = [right for right in RIGHTS if text(fields, f"right-{right}")]
    try:
        made, plain = await in_thread(_create, parts, given, rights)
    except SettingsError as error:
        refusal: dict[str, Any] = {"refusal": str(error), "fields": {**given, "rights": rights}}
        refused: Response = await in_thread(partial(_tokens_page, request, parts, 422, **refusal))
        return refused
    _record(request, parts, caller, AuditEvent("token.created", target=made.id))
    answer: Response = await in_thread(partial(_tokens_page, request, parts, made=made, plain=plain))
    return answer


def _create(parts: Resources, given: dict[str, str], rights: list[str]) -> tuple[Token, str]:
    return parts.tokens.create(
        given["name"],
        user_id=given["user"] or None,
        org_id=given["org"] or None,
        namespaces=given["namespaces"].replace(",", " ").split() or None,
        rights=rights,
        expires_at=expiry_of(given["expires"]),
    )


@router.get(f"{ADMIN}/tokens/{{token_id}}/revoke")
def confirm_revocation(request: Request, token_id: TokenId, caller: AdminCaller, parts: Parts) -> Response:
    """Ask before a token is revoked."""
    _demand_operator(caller)
    (listed,) = listed_tokens([_token(parts, token_id)], datetime.now(UTC))
    return page(request, "revoke.html", listed=listed, own=caller.token_id == token_id)


@router.post(f"{ADMIN}/tokens/{{token_id}}/revoke")
async def revoke_token(
    request: Request, token_id: TokenId, caller: AdminCaller, parts: Parts, _: CheckedForm
) -> Response:
    """Revoke a token."""
    _demand_operator(caller)
    token = await in_thread(_token, parts, token_id)
    await in_thread(parts.tokens.revoke, token.id)
    _record(request, parts, caller, AuditEvent("token.revoked", target=token.id))
    return redirect(f"{ADMIN}?every=1")


def _token(parts: Resources, token_id: str) -> Token:
    found = next((each for each in parts.tokens.list() if each.id == token_id), None)
    if found is None:
        raise NotVisible("no-such-token", f"no token {token_id!r}")
    return found


def _record(request: Request, parts: Resources, caller: Principal, event: AuditEvent) -> None:
    address = None if request.client is None else request.client.host
    parts.audit.write(replace(event, address=address).by(caller))


@router.get(f"{ADMIN}/audit")
def show_audit(
    request: Request, caller: AdminCaller, parts: Parts, event: Name = "", user: Name = "", refused: Name = ""
) -> Response:
    """Show the newest audit events."""
    _demand_operator(caller)
    kind = event if event in EVENTS else ""

    def wanted(each: dict[str, Any]) -> bool:
        return (
            (not kind or each["event"] == kind)
            and (not user or user in (each["user_id"], each["org_id"], each["token_id"]))
            and (not refused or each["reason"] is not None)
        )

    found, more = recent_events(parts.state, wanted, MOST_EVENTS)
    return page(
        request,
        "audit.html",
        events=[shown_event(each) for each in found],
        more=more,
        kinds=EVENTS,
        asked={"event": kind, "user": user, "refused": bool(refused)},
        keeps_text=parts.settings.serve.audit_text,
    )


@router.get(f"{ADMIN}/settings")
def show_settings(request: Request, caller: AdminCaller, parts: Parts) -> Response:
    """Show the settings that the service runs with."""
    _demand_operator(caller)
    return page(request, "settings.html", sections=shown_settings(parts.settings))
