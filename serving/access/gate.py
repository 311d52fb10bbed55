"""The gate: everything that is checked before a request reaches its route."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from parquetry.serving.access.origin import host_allowed, is_foreign, is_loopback, write_allowed
from parquetry.serving.access.principals import ANONYMOUS, OPERATOR, Principal
from parquetry.serving.access.rate_limit import RequestLimiter
from parquetry.serving.access.refusals import Forbidden, NotAuthenticated
from parquetry.serving.access.sessions import SessionStore, visit_of
from parquetry.serving.access.token_text import TOKEN_PREFIX
from parquetry.serving.access.tokens import Invalid, TokenStore
from parquetry.settings.serving import ServeSettings

TOKEN_HEADER = "x-parquetry-token"  # noqa: S105 - a header's name
_FORWARDED = frozenset({"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"})
"""headers that a reverse proxy adds"""
_BEGIN = f"which begins with {TOKEN_PREFIX}"
_CREATE = "create one with: parquetry token create --name NAME"
_WHY: dict[Invalid, str] = {
    "malformed": "this is not a token; it is incomplete or mistyped",
    "unknown": f"this service has no such token; {_CREATE}",
    "expired": f"the token has expired; {_CREATE}",
    "revoked": f"the token was revoked; {_CREATE}",
}


@dataclass(frozen=True, slots=True)
class Arrival:
    """The parts of a request that decide about its admission."""

    method: str
    peer: str | None
    """address of the other end of the connection, not of a header; None if it is unknown"""
    hosts: tuple[str, ...] = ()
    """every header `Host`; likewise below"""
    origins: tuple[str, ...] = ()
    fetch_site: str | None = None
    authorizations: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    """headers `X-Parquetry-Token`"""
    cookies: tuple[str, ...] = ()
    """headers `Cookie`"""
    forwarded: bool = False
    """True if a proxy passed the request on"""

    @classmethod
    def of(cls, method: str, peer: str | None, headers: Iterable[tuple[bytes, bytes]]) -> Arrival:
        """Take an arrival from the raw headers of ASGI.

        Args:
            method: HTTP method.
            peer: address of the other end of the connection.
            headers: `scope["headers"]`.
        """
        found: dict[str, list[str]] = {}
        for name, value in headers:
            found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip())

        def each(name: str) -> tuple[str, ...]:
            return tuple(found.get(name, ()))

        return cls(
            method,
            peer,
            each("host"),
            each("origin"),
            next(iter(each("sec-fetch-site")), None),
            each("authorization"),
            each(TOKEN_HEADER),
            each("cookie"),
            forwarded=not _FORWARDED.isdisjoint(found),
        )

    @property
    def host(self) -> str | None:
        return self.hosts[0] if len(self.hosts) == 1 else None

    @property
    def origin(self) -> str | None:
        """The header `Origin`; several are as good as an unknown one."""
        return None if not self.origins else self.origins[0] if len(self.origins) == 1 else "null"


class Gate:
    """Checks of a service before any of its routes. Thread-safe.

    Args:
        settings: `[serve]`; `host` is the address that the service really listens on.
        tokens: tokens of the service.
        sessions: sessions of browsers; None for none.
        cookie: name of the cookie of a session.
    """

    def __init__(
        self, settings: ServeSettings, tokens: TokenStore, sessions: SessionStore | None = None, cookie: str = ""
    ) -> None:
        self._settings = settings
        self._tokens = tokens
        self._sessions = sessions
        self.cookie = cookie
        """name of the cookie of a session"""
        self._limiter = RequestLimiter(settings.requests_per_minute)
        self.tokens_always = settings.token_required or not is_loopback(settings.host)
        """True if no request is served without a token"""

    def admit(self, arrival: Arrival, *, foreign_bearers: bool = False, by_cookie: bool = False) -> Principal:
        """Return the maker of a request.

        Args:
            arrival: the request.
            foreign_bearers: take other bearers than tokens of this service, as for the OpenAI dialect; the request is
                then anonymous, unless `X-Parquetry-Token` names its maker.
            by_cookie: take a cookie of a session, as for pages in browsers; elsewhere it means nothing, so that no
                page of another origin can use it.

        Raises:
            AccessRefused: the request is not served: its host, origin, token or rate.
            StorageError: the tokens cannot be read.
        """
        self.screen(arrival)
        plain = presented_token(arrival, foreign_bearers=foreign_bearers)
        signed_in = self._signed_in(arrival) if by_cookie and plain is None else None
        if signed_in is not None:
            return signed_in
        if plain is None:
            if self._needs_token(arrival):
                raise NotAuthenticated("token-missing", f"send a token, {_BEGIN}, as Authorization: Bearer; {_CREATE}")
            return ANONYMOUS if arrival.authorizations else OPERATOR
        found = self._tokens.check(plain)
        if not isinstance(found, Principal):
            raise NotAuthenticated(f"token-{found}", _WHY[found])
        self._limiter.admit(found.token_id or "")
        return found

    def _signed_in(self, arrival: Arrival) -> Principal | None:
        """Return the bearer of the session that a cookie names; None if it names none.

        Raises:
            NotAuthenticated: its token is not accepted any more; the session is over, too.
        """
        visit = visit_of(arrival.cookies, self.cookie)
        if self._sessions is None or visit is None:
            return None
        found = self._sessions.bearer(visit)
        if found is None:
            return None
        if not isinstance(found, Principal):
            self._sessions.end(visit)
            raise NotAuthenticated(f"token-{found}", _WHY[found])
        self._limiter.admit(found.token_id or "")
        return found

    def check_again(self, token_id: str) -> None:
        """Refuse a request whose token was revoked, or expired, since the request was admitted.

        Raises:
            NotAuthenticated: it was.
            StorageError: the tokens cannot be read.
        """
        found = self._tokens.check_again(token_id)
        if found is not None:
            raise NotAuthenticated(f"token-{found}", _WHY[found])

    def screen(self, arrival: Arrival) -> None:
        """Refuse requests that name another host, and writes of pages of other origins.

        For routes that need no token, such as `/health`; `admit` includes it.

        Raises:
            Forbidden: this is such a request.
        """
        if not host_allowed(arrival.hosts, self._settings.hosts, any_host=self.tokens_always):
            raise Forbidden("host-not-allowed", "the service has no such host name; add it to serve.hosts")
        origins = self._settings.cors_origins
        if not write_allowed(arrival.method, arrival.origin, arrival.host, arrival.fetch_site, origins):
            raise Forbidden("origin-not-allowed", "pages of other origins may not write; add it to serve.cors_origins")

    def _needs_token(self, arrival: Arrival) -> bool:
        """Return True unless a program or own page on this machine sent the request directly."""
        if self.tokens_always or arrival.forwarded or not is_loopback(arrival.peer):
            return True
        if not host_allowed(arrival.hosts, (), any_host=False):
            # A name in `serve.hosts`: a proxy on this machine passed it on.
            return True
        return is_foreign(arrival.origin, arrival.host) and arrival.origin not in self._settings.cors_origins


def presented_token(arrival: Arrival, *, foreign_bearers: bool = False) -> str | None:
    """Return the token that a request carries; None if it carries none.

    Args:
        arrival: the request.
        foreign_bearers: ignore credentials that are not of this service, instead of refusing them.

    Raises:
        NotAuthenticated: there is more than one token, or something else in its place.
    """
    if len(arrival.authorizations) > 1 or len(arrival.tokens) > 1:
        raise NotAuthenticated("several-tokens", "the request has a header with credentials twice")
    scheme, _, credentials = (arrival.authorizations or ("",))[0].partition(" ")
    credentials = credentials.strip()
    bearer = credentials if scheme.lower() == "bearer" and credentials.startswith(TOKEN_PREFIX) else None
    if arrival.tokens:
        if bearer is not None and bearer != arrival.tokens[0]:
            raise NotAuthenticated("several-tokens", "Authorization and X-Parquetry-Token hold different tokens")
        return arrival.tokens[0]
    if bearer is None and arrival.authorizations and not foreign_bearers:
        raise NotAuthenticated("token-foreign", f"Authorization: Bearer has to hold a token of this service, {_BEGIN}")
    return bearer
