"""Dependencies of routes: the caller of a request, its namespace, and the open parts of the service."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request

from parquetry.serving.access.principals import Principal, Right
from parquetry.serving.access.refusals import AccessRefused, Forbidden
from parquetry.serving.http.admission import record_refusal
from parquetry.serving.service.awaiting import first_version
from parquetry.serving.service.resources import Resources

NAMESPACE_HEADER = "X-Parquetry-Namespace"
_CHANGES: frozenset[Right] = frozenset({"write", "admin"})
_READS = frozenset({"GET", "HEAD"})


def resources_of(request: Request) -> Resources:
    """Return the open parts of the service that a request reached."""
    found: Resources = request.app.state.resources
    return found


async def _resources(request: Request) -> Resources:
    # A dependency that is no coroutine would cost a change of threads.
    return resources_of(request)


async def _published(request: Request) -> Resources:
    found = resources_of(request)
    await first_version(found.follower)
    return found


class Requires:
    """Dependency of a route: admits a request whose maker has a right.

    Args:
        right: the right; the route may do nothing that needs another one.
    """

    def __init__(self, right: Right) -> None:
        self.right = right

    async def __call__(self, request: Request) -> Principal:
        """Return the maker of the request, whom `Admission` found.

        Raises:
            AccessRefused: it lacks the right.
        """
        resources = resources_of(request)
        principal: Principal = request.state.principal
        try:
            principal.demand(self.right)
            if self.right in _CHANGES:
                check_again(request)
            if resources.settings.serve.read_only and self.right in _CHANGES and request.method not in _READS:
                raise Forbidden("read-only", "this service changes nothing; ask its operator for one that does")
        except AccessRefused as refusal:
            route = getattr(request.scope.get("route"), "path", "none")
            address = None if request.client is None else request.client.host
            record_refusal(resources, address, refusal, f"{request.method} {route}", principal)
            raise
        return principal


def check_again(request: Request) -> None:
    """Refuse a request whose token was revoked, or expired, while its body arrived: that may have taken a minute.

    Raises:
        NotAuthenticated: it was.
    """
    token_id = request.state.principal.token_id
    if token_id is not None:
        resources_of(request).gate.check_again(token_id)


def requires(right: Right) -> Any:
    """Return the dependency of a route that needs a right."""
    return Depends(Requires(right))


SearchCaller = Annotated[Principal, requires("search")]
ReadCaller = Annotated[Principal, requires("read")]
WriteCaller = Annotated[Principal, requires("write")]
AdminCaller = Annotated[Principal, requires("admin")]
Parts = Annotated[Resources, Depends(_resources)]
PublishedParts = Annotated[Resources, Depends(_published)]
"""the open parts of the service, once there is a version of the corpus; for routes that read it"""


def namespace_of(resources: Resources, principal: Principal, *asked: str | None) -> str:
    """Return the namespace of a request: the first that it names, else the token's default, else the corpus's.

    Raises:
        NotVisible: it does not exist for the maker of the request.
    """
    named = next((name for name in asked if name is not None), None)
    return principal.namespace(named, resources.settings.corpus.namespace)


def namespace_in_body(resources: Resources, principal: Principal, request: Request, named: str | None) -> str:
    """Return the namespace of a request whose body may name one: else, or if the query does, as for other requests.

    Raises:
        NotVisible: it does not exist for the maker of the request.
    """
    asked = request.query_params.get("namespace", named)
    header = request.headers.get(NAMESPACE_HEADER)
    return namespace_of(resources, principal, asked, None if header is None else _in_utf_8(header))


async def _in_path(request: Request, namespace: Annotated[str, Path(max_length=255)]) -> str:
    return namespace_of(resources_of(request), request.state.principal, namespace)


async def _named(
    request: Request,
    namespace: Annotated[
        str | None, Query(max_length=255, description=f"Namespace; the header `{NAMESPACE_HEADER}` names one, too.")
    ] = None,
    header: Annotated[
        str | None,
        Header(alias=NAMESPACE_HEADER, description="Namespace; default: the token's, else `default`.", max_length=255),
    ] = None,
) -> str:
    named = None if header is None else _in_utf_8(header)
    return namespace_of(resources_of(request), request.state.principal, namespace, named)


def _in_utf_8(header: str) -> str:
    """Return a header as UTF-8, in which a client sends a name; the web framework takes every byte for a character."""
    try:
        return header.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return header


PathNamespace = Annotated[str, Depends(_in_path)]
"""the namespace in the path of a route; stands behind the caller, whose right is checked first"""
Namespace = Annotated[str, Depends(_named)]
"""the namespace of a route without one in its path; stands behind the caller, whose right is checked first"""
