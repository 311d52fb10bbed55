"""Principals: who makes a request, and what they may do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from parquetry.serving.access.refusals import Forbidden, NotVisible
from parquetry.storage.search.filters import Caller

Right = Literal["search", "read", "write", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)
"""search: questions and their results; read: whole documents, lists and statistics; write: uploads and their removal;
admin: all of these, public uploads, and operation of the service"""
DEFAULT_NAMESPACE = "default"
"""namespace of a request that names none, if its token has no default"""
_NAMESPACE = re.compile(r"[\w.-]{1,255}")
"""names of namespaces, as in the settings"""
_LONGEST = 80
"""characters of a name that a message repeats"""


@dataclass(frozen=True, slots=True)
class Principal:
    """Maker of a request: the bearer of a token, the local operator, or an anonymous caller."""

    token_id: str | None
    """None for the operator and anonymous callers"""
    user_id: str | None
    org_id: str | None
    namespaces: tuple[str, ...] | None
    """namespaces that exist for this principal; None for all"""
    rights: frozenset[Right]
    default_namespace: str | None
    """namespace of requests that name none; None for `DEFAULT_NAMESPACE`"""
    operator: bool = False
    """True for the local operator without a token, who sees everything"""

    def caller(self) -> Caller | None:
        """Return the caller for `Filters`; None for the operator and for admins without user and organization."""
        if self.operator or ("admin" in self.rights and not self.user_id and not self.org_id):
            return None
        return Caller(self.user_id or None, self.org_id or None)

    @property
    def sees_everything(self) -> bool:
        """True for the operator, and for admins whose token names neither owner nor namespaces."""
        return self.caller() is None and self.namespaces is None

    def may(self, right: Right) -> bool:
        """Return True if the principal has a right; `admin` includes the others."""
        return right in self.rights or "admin" in self.rights

    def demand(self, right: Right) -> None:
        """Refuse a principal without a right.

        Raises:
            Forbidden: it lacks the right.
        """
        if not self.may(right):
            raise Forbidden("right-missing", f"this needs the right {right!r}, which the token does not have")

    def sees(self, namespace: str) -> bool:
        """Return True if a namespace can exist for this principal."""
        return self.namespaces is None or namespace in self.namespaces

    def namespace(self, asked: str | None, fallback: str = DEFAULT_NAMESPACE) -> str:
        """Return the namespace of a request.

        Args:
            asked: namespace that the request names; None if it names none.
            fallback: namespace of a request that names none, for a token without a default.

        Raises:
            NotVisible: this namespace does not exist for the principal.
        """
        if asked is not None and not _NAMESPACE.fullmatch(asked):
            raise no_such_namespace(asked[:_LONGEST])
        name = asked if asked is not None else self.default_namespace or fallback
        if not self.sees(name):
            raise no_such_namespace(name)
        return name


def no_such_namespace(name: str) -> NotVisible:
    """Return the refusal for a namespace that does not exist, or not for the caller: one text for both."""
    return NotVisible("no-such-namespace", f"no namespace {name!r}")


OPERATOR = Principal(None, None, None, None, frozenset(RIGHTS), None, operator=True)
"""the local operator: a request without a token from the same machine, where no token is required"""
ANONYMOUS = Principal(None, None, None, None, frozenset({"search", "read"}), None)
"""a caller without a name: sees what is public, and writes nothing"""
