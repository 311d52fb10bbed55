"""The operator's pages: tokens are shown once, events and settings to nobody else, and no secret on any page."""

import pytest

from parquetry.serving.web.admin import expiry_of, shown_settings
from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.serving.web.browsing import Visitor
from tests.workshop import Workshop

PAGES = ("/admin", "/admin/audit", "/admin/settings")
KEY = "sk-planted-0123456789abcdef"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("guarded"))
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    settings = {
        "corpus": {"root": str(workshop.root / "corpus")},
        "serve": {"token_required": True, "audit_text": True},
        "llm": {"api_key": KEY, "model": "m"},
        "source": [{"name": "shelf", "uri": str(workshop.root), "tags": ["<b>bold</b>"]}],
    }
    with running_app(parse_settings(settings, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


@pytest.fixture
def operator(guarded):
    visitor = Visitor(guarded.url)
    visitor.sign_in(guarded.resources.tokens.create("root", rights=["admin"])[1])
    return visitor


NO_RIGHTS = {"right-search": "", "right-read": "", "right-write": "", "right-admin": ""}


def made_token(page):
    (plain,) = [given["value"] for tag, given in page.tags if given.get("id") == "plain"]
    return plain


def test_new_token_is_shown_once_opens_what_it_may_and_is_recorded(guarded, operator):
    form = operator.open("/admin").form("/admin/tokens")
    page = operator.send(
        form, name="Ada's <b>laptop</b>", user="ada", expires="30d", **{**NO_RIGHTS, "right-search": "1"}
    )
    plain = made_token(page)
    assert plain.startswith("pqt_")
    principal = guarded.resources.tokens.find(plain)
    assert (principal.user_id, principal.rights) == ("ada", {"search"})
    again = operator.open("/admin")
    assert "Ada's <b>laptop</b>" in again.text
    assert plain not in again.html
    assert again.response.headers["cache-control"] == "no-store"
    visitor = Visitor(guarded.url)
    assert visitor.sign_in(plain).response.url.path == "/search"
    kept = b"".join(file.read_bytes() for file in guarded.resources.state.iterdir() if file.is_file())
    assert plain.encode() not in kept
    assert f"token.created {principal.token_id}" in operator.open("/admin/audit").text


def test_revoked_token_is_refused_at_once_and_stays_in_the_list(guarded, operator):
    token, plain = guarded.resources.tokens.create("lost phone", rights=["search", "read"])
    visitor = Visitor(guarded.url)
    visitor.sign_in(plain)
    question = operator.open(f"/admin/tokens/{token.id}/revoke")
    assert "lost phone" in question.text
    page = operator.send(question.form(f"/admin/tokens/{token.id}/revoke"))
    assert "lost phone" in page.text
    assert "Revoked" in page.text
    assert "lost phone" not in operator.open("/admin").text
    assert visitor.open("/documents").status == 401
    assert operator.open("/admin/tokens/none/revoke").status == 404


def test_token_that_cannot_be_made_says_why_and_keeps_what_was_typed(operator):
    form = operator.open("/admin").form("/admin/tokens")
    for given, told in (
        ({"name": "x", "expires": "90d", **NO_RIGHTS}, "right"),
        ({"name": "x", "expires": "7y", "right-read": "1"}, "choose how long"),
        ({"name": "x", "namespaces": "a b/c", "expires": "90d", "right-read": "1"}, "b/c"),
    ):
        page = operator.send(form, **given)
        assert page.status == 422, given
        assert told in page.text, given
        assert page.form("/admin/tokens").values["name"] == "x"


@pytest.mark.parametrize("owner", [{"org_id": "acme"}, {"user_id": "ada"}, {"namespaces": ["default"]}])
def test_administrator_of_a_part_sees_none_of_it(guarded, owner):
    visitor = Visitor(guarded.url)
    page = visitor.sign_in(guarded.resources.tokens.create("part", rights=["admin"], **owner)[1])
    assert "/admin" not in page.links
    for path in PAGES:
        refused = visitor.open(path)
        assert refused.status == 403, path
        assert "right-missing" in refused.html
    form = visitor.open("/add").form("/add/text")
    form.action = "/admin/tokens"
    assert visitor.send(form, name="stolen", **{"right-admin": "1"}).status == 403
    assert "stolen" not in [each.name for each in guarded.resources.tokens.list()]


def test_events_are_the_newest_ones_with_their_callers_as_text(guarded, operator):
    Visitor(guarded.url).sign_in("pqt_wrong")
    operator.open("/search", q="<script>alert(1)</script> oak")
    page = operator.open("/admin/audit")
    table = page.html.partition("<tbody>")[2]
    assert table.index("knowledge.retrieve") < table.index("access.refused")
    assert "<script>alert(1)</script> oak" in page.text
    refused = operator.open("/admin/audit", refused="1")
    assert "knowledge.retrieve" not in refused.html.partition("<tbody>")[2]
    assert "token-malformed" in refused.text
    assert "No events match." in operator.open("/admin/audit", user="nobody").text


def test_settings_are_shown_with_what_is_set_and_without_secrets(operator):
    page = operator.open("/admin/settings")
    assert KEY not in page.html
    assert "api_key set " in page.text
    assert '"***"' in page.text
    assert "[[source]] shelf" in page.text
    assert '["<b>bold</b>"]' in page.text


def test_secret_in_any_place_of_the_settings_is_masked():
    tables = {
        "corpus": {"root": "corpus"},
        "extraction": {"passwords": ["open-sesame-42"]},
        "embedding": {"api_key": "sk-embed-0123456789"},
        "upstream": {"api_key": "sk-upstream-0123456789"},
    }
    told = repr(shown_settings(parse_settings(tables, "test")))
    assert told.count("***") == 3
    assert not any(secret in told for secret in ("open-sesame", "sk-embed", "sk-upstream"))


def test_service_that_changes_nothing_offers_no_tokens(tmp_path):
    settings = parse_settings({"corpus": {"root": str(tmp_path / "c")}, "serve": {"read_only": True}}, "test")
    with running_app(settings) as app:
        page = Visitor(app.url).open("/admin")
        assert [form.action for form in page.forms] == []
        assert page.status == 200


def test_choice_without_an_end_is_none():
    assert expiry_of("") is None
