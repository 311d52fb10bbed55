"""No principal sees or writes beyond its token, whatever a request asks for."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquetry.model import Access
from parquetry.serving.access.principals import ANONYMOUS, OPERATOR, RIGHTS, Principal
from parquetry.serving.access.refusals import AccessRefused, Forbidden, NotVisible, UnusableAccess
from parquetry.serving.access.visibility import access_for, demand_change, filters_for, is_visible
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.search.filters import Caller, Filters, select_visible
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow

USERS, ORGS, NAMESPACES = ["ada", "bob", ""], ["acme", "zeta", ""], ["default", "hr", "law"]
users, orgs = st.none() | st.sampled_from(USERS), st.none() | st.sampled_from(ORGS)
namespaces = st.lists(st.sampled_from(NAMESPACES), unique=True, max_size=3).map(tuple)
rights = st.frozensets(st.sampled_from(RIGHTS))
tokens = st.builds(
    Principal, st.just("id"), users, orgs, st.none() | namespaces, rights, st.none() | st.sampled_from(NAMESPACES)
)
principals = tokens | st.sampled_from([ANONYMOUS, OPERATOR])
requests = st.builds(
    Filters,
    namespaces=namespaces,
    caller=st.none() | st.builds(Caller, users, orgs),
    since=st.none() | st.just(datetime(1970, 1, 1, tzinfo=UTC)),
    where=st.none() | st.just("1 = 1 OR true"),
)
accesses = st.builds(
    Access, st.sampled_from(["public", "organization", "individual"]), st.sampled_from(ORGS), st.sampled_from(USERS)
)
DOCUMENTS = [
    (namespace, Access(visibility, org, user))
    for namespace in NAMESPACES
    for visibility, org, user in (
        ("public", None, None),
        *(("organization", org, None) for org in ("acme", "zeta")),
        *(("individual", None, user) for user in ("ada", "bob")),
    )
]


def allowed(principal, namespace, access):
    """Tell by the token alone if a document exists for its bearer."""
    if principal.namespaces is not None and namespace not in principal.namespaces:
        return False
    if principal.operator or ("admin" in principal.rights and not principal.user_id and not principal.org_id):
        return True
    return (
        access.visibility == "public"
        or (access.visibility == "organization" and access.org_id and access.org_id == principal.org_id)
        or (access.visibility == "individual" and access.user_id and access.user_id == principal.user_id)
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Open a corpus with a document for each of `DOCUMENTS`; its path is the number there."""
    shelf = Shelf(tmp_path_factory.mktemp("corpus"))
    for number, (namespace, access) in enumerate(DOCUMENTS):
        shelf.publish({str(number): ["words"]}, namespace=namespace, access=access)
    with connect_snapshot(shelf.lake.snapshot()) as connection:
        yield connection


def answered(corpus, filters):
    select_visible(corpus, filters, columns=("revision", "path"))
    return {int(path) for (path,) in corpus.execute("SELECT path FROM visible").fetchall()}


@settings(max_examples=150, deadline=None)
@given(principals, st.none() | st.sampled_from(NAMESPACES), requests)
def test_no_request_shows_a_document_beyond_the_token(corpus, principal, namespace, request):
    """Run on a real corpus, so that the rule of the search is the one that is tested."""
    try:
        filters = filters_for(principal, namespace, request)
    except AccessRefused:
        return
    found = answered(corpus, filters)
    assert found <= {n for n, document in enumerate(DOCUMENTS) if allowed(principal, *document)}
    asked = set(answered(corpus, request)) if request.caller is not None else None
    assert asked is None or found <= asked or filters.caller != request.caller


@settings(max_examples=50, deadline=None)
@given(principals.filter(lambda each: each.namespaces != ()))
def test_request_without_conditions_shows_everything_that_the_token_allows(corpus, principal):
    found = answered(corpus, filters_for(principal, None, Filters()))
    assert found == {n for n, document in enumerate(DOCUMENTS) if allowed(principal, *document)}


@given(principals, st.sampled_from(DOCUMENTS))
def test_what_exists_for_a_principal_is_the_same_by_its_id(principal, document):
    assert is_visible(principal, *document) == bool(allowed(principal, *document))


@given(principals, st.sampled_from(NAMESPACES), requests)
def test_namespace_that_the_token_does_not_name_does_not_exist(principal, namespace, request):
    if principal.sees(namespace):
        return
    with pytest.raises(NotVisible) as hidden:
        filters_for(principal, namespace, Filters())
    stranger = Principal("id", None, None, ("only",), frozenset(RIGHTS), None)
    with pytest.raises(NotVisible) as missing:
        stranger.namespace(namespace)
    assert (str(hidden.value), hidden.value.reason) == (str(missing.value), missing.value.reason)


@given(
    principals,
    st.none() | st.sampled_from(["public", "organization", "individual"]),
    users,
    orgs,
    st.none() | st.booleans(),
)
def test_upload_is_never_seen_by_more_than_the_token_allows(principal, visibility, user, org, shared):
    try:
        access = access_for(principal, visibility, user, org, shared, ["a"])
    except AccessRefused:
        return
    unbound = principal.caller() is None
    assert principal.may("write")
    assert access.tags == ("a",)
    assert visibility in (None, access.visibility)
    if access.visibility == "public":
        assert principal.may("admin") or not (principal.user_id or principal.org_id)
        assert (access.user_id, access.org_id) == (None, None)
    elif access.visibility == "organization":
        assert access.org_id
        assert access.user_id is None
        assert unbound or access.org_id == principal.org_id
    else:
        assert access.user_id
        assert access.org_id is None
        assert unbound or access.user_id == principal.user_id
    assert shared is None or shared == (access.visibility != "individual")
    for namespace in NAMESPACES:
        assert is_visible(principal, namespace, access) == principal.sees(namespace), "the writer sees its document"


@given(principals, st.sampled_from(NAMESPACES), accesses)
def test_what_a_principal_may_change_is_what_it_could_write(principal, namespace, access):
    try:
        demand_change(principal, namespace, access)
    except NotVisible:
        assert not is_visible(principal, namespace, access)
        return
    except Forbidden:
        assert is_visible(principal, namespace, access)
        assert not principal.may("write") or access.visibility == "public"
        return
    owner = {"individual": {"user_id": access.user_id}, "organization": {"org_id": access.org_id}, "public": {}}
    given_owner = {name: value or None for name, value in owner[access.visibility].items()}
    if all(given_owner.values()):
        assert access_for(principal, access.visibility, **given_owner).visibility == access.visibility


def person(user="ada", org="acme", *rights):
    return Principal("id", user, org, None, frozenset(rights or {"write"}), None)


def organization(name):
    return Access("organization", name)


APPLICATION, ADMIN, MEMBER = person(None, None), person(None, None, "admin"), person("ada", "acme", "admin")
CASES = {
    "a user's upload is the user's own": (person(), {}, Access("individual", None, "ada")),
    "an organization's upload is the organization's": (person(None), {}, organization("acme")),
    "an upload of nobody is public": (APPLICATION, {}, Access()),
    "the operator's upload is public": (OPERATOR, {}, Access()),
    "a user shares with the organization": (person(), {"shared": True}, organization("acme")),
    "a user keeps it": (person(), {"shared": False}, Access("individual", None, "ada")),
    "an application shares with all": (APPLICATION, {"shared": True}, Access()),
    "an admin of an organization shares with it": (MEMBER, {"shared": True}, organization("acme")),
    "an admin publishes": (MEMBER, {"visibility": "public"}, Access()),
    "a user names itself": (person(), {"user_id": "ada"}, Access("individual", None, "ada")),
    "a user names its organization": (person(), {"org_id": "acme"}, organization("acme")),
    "an admin writes for a user": (ADMIN, {"user_id": "bob"}, Access("individual", None, "bob")),
    "an admin writes for an organization": (ADMIN, {"org_id": "zeta"}, organization("zeta")),
    "an operator writes for a user": (OPERATOR, {"shared": False, "user_id": "bob"}, Access("individual", None, "bob")),
    "both forms agree": (person(), {"shared": True, "visibility": "organization"}, organization("acme")),
}


@pytest.mark.parametrize(("principal", "asked", "access"), CASES.values(), ids=CASES)
def test_upload_belongs_to_whom_the_token_and_the_request_name(principal, asked, access):
    assert access_for(principal, **asked) == access


REFUSED = {
    "reader": (person("ada", "acme", "read", "search"), {}, Forbidden, "right-missing"),
    "anonymous": (ANONYMOUS, {}, Forbidden, "right-missing"),
    "public by a user": (person(), {"visibility": "public"}, Forbidden, "public-not-allowed"),
    "public by an organization": (person(None), {"visibility": "public"}, Forbidden, "public-not-allowed"),
    "shared by a user without organization": (person("ada", None), {"shared": True}, Forbidden, "public-not-allowed"),
    "for another user": (person(), {"user_id": "bob"}, Forbidden, "other-user"),
    "public, for another user": (APPLICATION, {"user_id": "bob", "visibility": "public"}, Forbidden, "other-user"),
    "for another organization": (person(), {"org_id": "zeta"}, Forbidden, "other-organization"),
    "admin of a user for another": (person("ada", None, "admin"), {"user_id": "bob"}, Forbidden, "other-user"),
    "organization of nobody": (person("ada", None), {"visibility": "organization"}, UnusableAccess, "org-missing"),
    "individual of nobody": (OPERATOR, {"visibility": "individual"}, UnusableAccess, "user-missing"),
    "kept by nobody": (APPLICATION, {"shared": False}, UnusableAccess, "user-missing"),
    "shared and individual": (person(), {"shared": True, "visibility": "individual"}, UnusableAccess, "contradiction"),
    "kept and public": (OPERATOR, {"shared": False, "visibility": "public"}, UnusableAccess, "contradiction"),
    "empty user": (OPERATOR, {"user_id": ""}, UnusableAccess, "empty-owner"),
    "empty organization": (OPERATOR, {"org_id": ""}, UnusableAccess, "empty-owner"),
}


@pytest.mark.parametrize(("principal", "asked", "kind", "reason"), REFUSED.values(), ids=REFUSED)
def test_upload_beyond_the_token_is_refused_with_a_reason(principal, asked, kind, reason):
    with pytest.raises(kind) as refusal:
        access_for(principal, **asked)
    assert refusal.value.reason == reason


def test_refusal_for_another_user_says_nothing_of_that_user():
    told = set()
    for other in ("bob", "somebody-else"):
        with pytest.raises(Forbidden) as refusal:
            access_for(person(), user_id=other)
        told.add(str(refusal.value))
    assert len(told) == 1


@pytest.mark.parametrize(
    ("own", "asked", "caller"),
    [
        (person(), None, Caller("ada", "acme")),
        (person(), Caller("ada", None), Caller("ada", None)),
        (person(), Caller(None, None), Caller(None, None)),
        (OPERATOR, None, None),
        (OPERATOR, Caller("bob", None), Caller("bob", None)),
        (ADMIN, Caller("bob", "zeta"), Caller("bob", "zeta")),
        (ANONYMOUS, None, Caller(None, None)),
    ],
)
def test_request_can_narrow_its_caller(own, asked, caller):
    assert filters_for(own, None, Filters(caller=asked)).caller == caller


@pytest.mark.parametrize("asked", [Caller("bob", None), Caller("ada", "zeta"), Caller("bob", "acme")])
def test_request_on_behalf_of_another_is_refused(asked):
    with pytest.raises(Forbidden) as refusal:
        filters_for(person(), None, Filters(caller=asked))
    assert refusal.value.reason == "other-caller"


def test_token_without_any_namespace_sees_nothing():
    """For `Filters`, no names mean all namespaces."""
    with pytest.raises(NotVisible):
        filters_for(Principal("id", "ada", None, (), frozenset({"search"}), None), None, Filters())
