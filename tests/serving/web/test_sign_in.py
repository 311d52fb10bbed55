"""Signing in with a token: the cookie stands for it, shows what it may see, and ends with it."""

import pytest

from parquetry.model import Access
from parquetry.serving.access.sessions import SESSION_SECONDS, SessionStore, visit_of
from parquetry.serving.access.tokens import TokenStore
from parquetry.settings.sections import parse_settings
from parquetry.sources.uploads.store import UploadStore
from tests.servers.http_app import running_app
from tests.serving.web.browsing import Visitor
from tests.workshop import Workshop


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Run an application that requires tokens, over documents of Ada, of Eve and of everybody."""
    workshop = Workshop(tmp_path_factory.mktemp("guarded"))
    workshop.write("everybody.md", "The gate opens at nine.")
    uploads = UploadStore(workshop.settings)
    for user in ("ada", "eve"):
        name = f"{user}.md"
        access = Access("individual", user_id=user)
        uploads.put("default", name, f"The vault word of {user}.".encode(), filename=name, access=access)
    workshop.refresh()
    workshop.refresh(targets=("uploads",))
    settings = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": {"token_required": True}}
    with running_app(parse_settings(settings, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


def token(guarded, **options):
    return guarded.resources.tokens.create("visitor", **options)[1]


def test_page_without_a_token_is_the_form_and_leads_on(guarded):
    visitor = Visitor(guarded.url)
    page = visitor.open("/documents?sort=name")
    assert page.status == 401
    assert "everybody.md" not in page.text
    page = visitor.send(page.form("/sign-in"), token=token(guarded))
    assert page.response.url.path == "/documents"
    assert page.response.url.params["sort"] == "name"
    assert "everybody.md" in page.text


def test_cookie_is_not_the_token_and_is_out_of_reach_of_scripts_and_other_sites(guarded):
    visitor, plain = Visitor(guarded.url), token(guarded)
    page = visitor.sign_in(plain)
    (cookie,) = page.response.history[0].headers.get_list("set-cookie")
    assert plain not in cookie
    assert "; HttpOnly" in cookie
    assert "; SameSite=strict" in cookie
    assert "; Path=/" in cookie
    (value,) = visitor.client.cookies.values()
    state = guarded.resources.state
    kept = b"".join(file.read_bytes() for file in state.iterdir() if file.name.startswith("sessions.db"))
    assert value.encode() not in kept
    assert plain.encode() not in kept


def test_signing_in_changes_the_cookie_and_signing_out_ends_the_session(guarded):
    visitor = Visitor(guarded.url)
    visitor.open("/sign-in")
    (before,) = visitor.client.cookies.values()
    page = visitor.sign_in(token(guarded))
    (cookie,) = visitor.client.cookies.items()
    assert cookie[1] != before
    visitor.send(page.form("/sign-out"))
    with_old = Visitor(guarded.url)
    with_old.client.cookies.set(*cookie)
    assert with_old.open("/").status == 401


def test_link_on_another_site_ends_no_session(guarded):
    """A browser sends no cookie then; the page loads itself again, with it."""
    response = Visitor(guarded.url).client.get("/documents", headers={"Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 401
    assert "set-cookie" not in response.headers
    assert '<meta http-equiv="refresh" content="0">' in response.text
    assert "everybody.md" not in response.text


def test_wrong_token_is_refused_with_a_reason_and_recorded_without_it(guarded):
    page = Visitor(guarded.url).sign_in("pqt_wrong")
    assert page.status == 401
    assert "this is not a token" in page.text
    text = (guarded.resources.state / "audit.jsonl").read_text()
    assert "token-malformed" in text
    assert "pqt_wrong" not in text + page.html


def test_revoked_token_ends_its_sessions(guarded):
    made, plain = guarded.resources.tokens.create("soon gone")
    visitor = Visitor(guarded.url)
    assert visitor.sign_in(plain).status == 200
    guarded.resources.tokens.revoke(made.id)
    page = visitor.open("/")
    assert page.status == 401
    assert "the token was revoked" in page.text


@pytest.mark.parametrize("user", ["ada", "eve"])
def test_another_persons_documents_are_on_no_page(guarded, user):
    other = {"ada": "eve", "eve": "ada"}[user]
    visitor = Visitor(guarded.url)
    visitor.sign_in(token(guarded, user_id=user, rights=["search", "read", "write"]))
    seen = visitor.open("/documents")
    assert f"{user}.md" in seen.text
    pages = [seen, visitor.open("/"), visitor.open("/search", q="vault word"), visitor.open("/documents", q=other)]
    assert [page.status for page in pages] == [200] * 4
    # The name of the other is in the form that asked for it, and nowhere else.
    assert [page.text.count(f"{other}.md") for page in pages] == [0] * 4
    assert "Documents 2" in pages[1].text
    with guarded.resources.follower.reader() as reader:
        ids = {row["filename"]: row["document_id"] for row in reader.documents()}
    for path in (f"/documents/{ids[f'{other}.md']}", f"/documents/{ids[f'{other}.md']}/delete"):
        assert visitor.open(path).status == 404
    # Public documents are changed by administrators alone.
    assert f"/documents/{ids['everybody.md']}/delete" not in visitor.open(f"/documents/{ids['everybody.md']}").links


def test_only_views_that_a_token_may_open_are_offered(guarded):
    visitor = Visitor(guarded.url)
    page = visitor.sign_in(token(guarded, rights=["search"]))
    assert page.response.url.path == "/search"
    assert {"/search"} == {link for link in page.links if link in ("/search", "/documents", "/add")}
    assert "right-missing" in visitor.open("/documents").html


@pytest.mark.parametrize(
    "place", ["//evil.example", "https://evil.example", "/\\evil.example", "/v1/models", "/documents\n"]
)
def test_signing_in_leads_to_no_other_place(guarded, place):
    visitor = Visitor(guarded.url)
    form = visitor.open("/sign-in", next=place).form("/sign-in")
    page = visitor.send(form, token=token(guarded), next=place)
    assert str(page.response.url) == f"{guarded.url}/"


def test_cookie_of_a_session_means_nothing_to_other_routes(guarded):
    visitor = Visitor(guarded.url)
    visitor.sign_in(token(guarded, rights=["admin"]))
    for path in ("/api/knowledge/stats", "/v1/models", "/metrics", "/openapi.json"):
        assert visitor.client.get(path).status_code == 401, path


def test_session_ends_after_its_time(tmp_path):
    clock = [1_000_000.0]
    with TokenStore(tmp_path) as tokens:
        sessions = SessionStore(tmp_path, tokens, lambda: clock[0])
        principal = tokens.find(tokens.create("ada", user_id="ada")[1])
        visit = sessions.begin(principal)
        assert sessions.bearer(visit) == principal
        clock[0] += SESSION_SECONDS
        assert sessions.bearer(visit) is None
        sessions.close()


@pytest.mark.parametrize(
    "headers", [["a=" + "x" * 43 + "; a=" + "y" * 43], ["a=" + "x" * 43, "a=" + "y" * 43], ["a=x"], []]
)
def test_cookie_that_is_ambiguous_or_malformed_is_none(headers):
    assert visit_of(headers, "a") is None
    assert visit_of([f"b=1; a={'x' * 43}"], "a") == "x" * 43
