"""Limits of a principal on the documents that it sees and on the visibility of those that it writes.

Two laws hold for every principal (tests/serving/access/test_visibility.py): its filters never let through a document
that its token does not allow, and a document that it writes is never seen by more callers than its token allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parquetry.model import Access, Visibility
from parquetry.serving.access.principals import Principal, no_such_namespace
from parquetry.serving.access.refusals import Forbidden, NotVisible, UnusableAccess
from parquetry.storage.search.filters import Caller, Filters


def filters_for(principal: Principal, namespace: str | None, filters: Filters) -> Filters:
    """Limit the filters of a request to what its principal sees.

    Args:
        principal: maker of the request.
        namespace: the one namespace of the request, as `Principal.namespace` returns it; None for all of
            `filters.namespaces`, or all that exist for the principal.
        filters: conditions of the request. Its caller can narrow what the principal sees, never widen it.

    Raises:
        NotVisible: a namespace does not exist for the principal.
        Forbidden: the caller of the filters sees what the principal does not.
    """
    asked = filters.namespaces
    for name in (*asked, *(() if namespace is None else (namespace,))):
        if not principal.sees(name):
            raise no_such_namespace(name)
    if namespace is not None:
        if asked and namespace not in asked:
            raise no_such_namespace(namespace)
        names: tuple[str, ...] = (namespace,)
    else:
        names = asked or principal.namespaces or ()
    if not names and principal.namespaces is not None:
        # For `Filters`, no names mean all namespaces.
        raise NotVisible("no-such-namespace", "no namespace exists for this token")
    return replace(filters, namespaces=names, caller=_narrowed(principal.caller(), filters.caller))


def access_for(
    principal: Principal,
    visibility: Visibility | None = None,
    user_id: str | None = None,
    org_id: str | None = None,
    shared: bool | None = None,
    tags: Sequence[str] = (),
) -> Access:
    """Return the access of an upload, never wider than the token allows.

    Args:
        principal: maker of the request.
        visibility: as asked for. By default it follows from the other arguments; if there are none, it is the
            narrowest that fits the token: its user's, else its organization's, else public.
        user_id: owner of an individual document; by default the token's user.
        org_id: organization of a document; by default the token's.
        shared: short form. True: of the token's organization, or public without one; False: the token's user alone.
        tags: labels of the document.

    Raises:
        Forbidden: the token does not allow this, or lacks the right `write`.
        UnusableAccess: the arguments contradict each other, or an owner is missing.
    """
    principal.demand("write")
    for name, value in (("user_id", user_id), ("org_id", org_id)):
        if value == "":
            raise UnusableAccess("empty-owner", f"{name} is empty; leave it out or name one")
    _check_owner(principal, user_id, org_id)
    chosen = _visibility(principal, visibility, user_id, org_id, shared)
    if chosen == "public":
        if not _may_publish(principal):
            raise Forbidden("public-not-allowed", "public documents need a token with the right 'admin'")
        return Access("public", tags=tuple(tags))
    if chosen == "organization":
        organization = org_id or principal.org_id
        if not organization:
            raise UnusableAccess("org-missing", "visibility 'organization' needs org_id, or a token of an organization")
        return Access("organization", org_id=organization, tags=tuple(tags))
    user = user_id or principal.user_id
    if not user:
        raise UnusableAccess("user-missing", "visibility 'individual' needs user_id, or a token of a user")
    return Access("individual", user_id=user, tags=tuple(tags))


def is_visible(principal: Principal, namespace: str, access: Access) -> bool:
    """Return True if a document exists for a principal."""
    if not principal.sees(namespace):
        return False
    caller = principal.caller()
    if caller is None or access.visibility == "public":
        return True
    if access.visibility == "organization":
        return bool(caller.org_id) and caller.org_id == access.org_id
    return bool(caller.user_id) and caller.user_id == access.user_id


def demand_change(principal: Principal, namespace: str, access: Access) -> None:
    """Refuse a change to a document that the principal could not have written itself.

    Args:
        principal: maker of the request.
        namespace: namespace of the document.
        access: access of the document as it is now.

    Raises:
        NotVisible: the document does not exist for the principal.
        Forbidden: the principal sees it, but may not change it.
    """
    if not is_visible(principal, namespace, access):
        raise NotVisible("no-such-document", "no such document")
    principal.demand("write")
    if access.visibility == "public" and not _may_publish(principal):
        raise Forbidden("public-not-allowed", "public documents are changed with a token with the right 'admin'")


def _may_publish(principal: Principal) -> bool:
    """Return True for admins, and for tokens without user and organization, whose uploads nobody could own."""
    return principal.may("admin") or not (principal.user_id or principal.org_id)


def _check_owner(principal: Principal, user_id: str | None, org_id: str | None) -> None:
    caller = principal.caller()
    if caller is None:
        return
    # The same text for names that exist and names that do not.
    if user_id is not None and user_id != caller.user_id:
        raise Forbidden("other-user", "the token may not write for this user; leave user_id out")
    if org_id is not None and org_id != caller.org_id:
        raise Forbidden("other-organization", "the token may not write for this organization; leave org_id out")


def _visibility(
    principal: Principal, visibility: Visibility | None, user_id: str | None, org_id: str | None, shared: bool | None
) -> Visibility:
    if shared is not None:
        if visibility is not None and shared != (visibility != "individual"):
            told = "true" if shared else "false"
            raise UnusableAccess("contradiction", f"shared: {told} contradicts visibility {visibility!r}; give one")
        if visibility is None and shared:
            return "organization" if org_id or principal.org_id else "public"
        return visibility or "individual"
    if visibility is not None:
        return visibility
    if user_id or (principal.user_id and not org_id):
        return "individual"
    return "organization" if org_id or principal.org_id else "public"


def _narrowed(own: Caller | None, asked: Caller | None) -> Caller | None:
    if own is None or asked is None:
        return asked if own is None else own
    if (asked.user_id or None) not in (None, own.user_id) or (asked.org_id or None) not in (None, own.org_id):
        raise Forbidden("other-caller", "the token may not search on behalf of this user or organization")
    return asked
