"""The commands `token create`, `token list`, `token revoke` and `token audit`."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from parquetry.errors import SettingsError
from parquetry.known_secrets import announce
from parquetry.nearest import hint
from parquetry.printing import tell
from parquetry.serving.access.audit import EVENTS, AuditEvent, AuditLog, audit_events
from parquetry.serving.access.principals import RIGHTS
from parquetry.serving.access.token_table import FILE
from parquetry.serving.access.tokens import Token, TokenStore
from parquetry.serving.cli.arguments import Command
from parquetry.serving.cli.filter_options import moment
from parquetry.serving.cli.options import MOST_ROWS, ConfigOption, CorpusOption, JsonOption, settings_for
from parquetry.serving.cli.output import print_json, print_table
from parquetry.serving.cli.suggestions import Commands
from parquetry.serving.state.folder import state_folder, state_place

app = typer.Typer(cls=Commands, help="Create, list and revoke tokens of the service.")


@app.command(cls=Command)
def create(
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="Label for people.")],
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="User of the token; default: public documents only.")
    ] = None,
    org: Annotated[str | None, typer.Option("--org", metavar="NAME", help="Organization of the token.")] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", metavar="NAME", help="Part of the corpus; may be repeated. Default: all."),
    ] = None,
    default_namespace: Annotated[
        str | None, typer.Option("--default-namespace", metavar="NAME", help="Namespace of requests that name none.")
    ] = None,
    right: Annotated[
        list[str] | None,
        typer.Option("--right", metavar="RIGHT", help=f"{', '.join(RIGHTS)}; repeatable. Default: search, read."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="In 30d, or at 2031-03-01; default: never.")
    ] = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token and print it.

    It is shown only this once; only a hash of it is stored.
    """
    expires_at = None if expires is None else _expiry(expires)
    state = state_folder(settings_for(config, corpus))
    with TokenStore(state) as store:
        token, plain = store.create(
            name,
            user_id=user,
            org_id=org,
            namespaces=namespace,
            default_namespace=default_namespace,
            rights=right or ("search", "read"),
            expires_at=expires_at,
        )
    AuditLog(state).write(AuditEvent("token.created", operator=True, target=token.id))
    if as_json:
        print_json({"token": plain, **_members(token)})
    else:
        tell(plain)
        tell(f"Token {token.id} ({token.name}): {_scope(token)}.")
        tell("It is not shown again. Requests carry it as: Authorization: Bearer pqt_...")
    announce(plain)


@app.command("list", cls=Command)
def list_tokens(
    every: Annotated[bool, typer.Option("--all", help="Expired and revoked tokens, too.")] = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tokens, without their secrets."""
    now = datetime.now(UTC)
    state = state_place(settings_for(config, corpus))
    tokens: list[Token] = []
    if (state / FILE).exists():
        with TokenStore(state) as store:
            tokens = [token for token in store.list() if every or token.state(now) == "active"]
    if as_json:
        print_json({"tokens": [_members(token) for token in tokens]})
        return
    if not tokens:
        tell("No tokens." if every else "No active tokens.")
        return
    columns = ("id", "token", "name", "user", "organization", "namespaces", "rights", "expires", "last used", "state")
    print_table(columns, [_row(token, now) for token in tokens])


@app.command(cls=Command)
def revoke(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="Its id or beginning, as `token list` shows them.")],
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Revoke a token: the service refuses the next request with it."""
    announce(token if token.startswith("pqt_") else None)
    state = state_place(settings_for(config, corpus))
    if not (state / FILE).exists():
        raise SettingsError(f"there are no tokens in {state}; give the service's own settings or corpus")
    with TokenStore(state) as store:
        revoked = store.revoke(token)
    AuditLog(state).write(AuditEvent("token.revoked", operator=True, target=revoked.id))
    if as_json:
        print_json(_members(revoked))
    else:
        tell(f"Revoked token {revoked.id} ({revoked.name}): {_scope(revoked)}.")


@app.command(cls=Command)
def audit(
    event: Annotated[
        str | None, typer.Option("--event", metavar="NAME", help=f"Only these events: {', '.join(EVENTS)}.")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Only events of this user.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="At this time or later: 2031-03-01, or 30d ago.")
    ] = None,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=1, max=MOST_ROWS, help="The newest events, at most so many.")
    ] = 50,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """List who asked, wrote or was refused, newest last."""
    if event is not None and event not in EVENTS:
        raise SettingsError(f"no event {event!r}; {hint(event, EVENTS)}")
    begin = None if since is None else moment(since, "--since")
    state = state_place(settings_for(config, corpus))
    kept: deque[Mapping[str, Any]] = deque(maxlen=limit)
    for each in audit_events(state):
        if event not in (None, each["event"]) or user not in (None, each["user_id"]):
            continue
        if begin is None or datetime.fromisoformat(str(each["time"])) >= begin:
            kept.append(each)
    if as_json:
        print_json({"events": list(kept)})
        return
    if not kept:
        tell("No events.")
        return
    columns = ("time", "event", "caller", "namespace", "documents", "chunks", "top_score", "milliseconds", "reason")
    print_table((*columns, "target"), [(*_event_row(each, columns), each["target"]) for each in kept])


def _event_row(event: Mapping[str, Any], columns: tuple[str, ...]) -> list[Any]:
    caller = "/".join(str(event[name]) for name in ("org_id", "user_id", "token_id") if event[name])
    told = {**event, "caller": caller or ("operator" if event["operator"] else event["address"])}
    return [told[name] for name in columns]


def _expiry(text: str) -> datetime:
    """Parse the end of a token's validity: a date or time, or an age from now on."""
    now = datetime.now(UTC)
    read = moment(text, "--expires", now)
    try:
        return now + (now - read) if text[-1:] in ("h", "d", "w") else read
    except OverflowError as error:
        raise SettingsError(f"--expires {text!r} is too far away; leave it out for a token without an end") from error


def _members(token: Token) -> dict[str, Any]:
    members = {**asdict(token), "state": token.state(datetime.now(UTC))}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in members.items()}


def _scope(token: Token) -> str:
    parts = [f"{kind} {name}" for kind, name in (("user", token.user_id), ("organization", token.org_id)) if name]
    if not parts:
        parts.append("everything in its namespaces" if "admin" in token.rights else "public documents")
    parts.append("all namespaces" if token.namespaces is None else f"namespaces {', '.join(token.namespaces)}")
    parts.append(f"rights {', '.join(token.rights)}")
    parts.append("no expiry" if token.expires_at is None else f"expires {_shown(token.expires_at)}")
    return "; ".join(parts)


def _row(token: Token, now: datetime) -> tuple[Any, ...]:
    return (
        token.id,
        f"{token.shown}...",
        token.name,
        token.user_id,
        token.org_id,
        "all" if token.namespaces is None else ", ".join(token.namespaces),
        ", ".join(token.rights),
        "never" if token.expires_at is None else _shown(token.expires_at),
        "never" if token.last_used_at is None else _shown(token.last_used_at),
        token.state(now),
    )


def _shown(moment_: datetime) -> str:
    return f"{moment_:%Y-%m-%d %H:%M} UTC"
