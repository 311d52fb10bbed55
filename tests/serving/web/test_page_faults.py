"""A fault in every backend call behind a page is a page with a 5xx and its reason, never an empty list."""

from types import SimpleNamespace

import pytest

from parquetry.serving.access.sessions import new_visit
from parquetry.serving.http.dashboard.paths import PATHS
from parquetry.serving.web.assets import PREFIX
from parquetry.serving.web.form_tokens import form_token
from parquetry.settings.sections import parse_settings
from parquetry.storage.analysis.analyze import analyze
from parquetry.storage.database import tuples
from parquetry.storage.lake.lake import Lake
from tests.servers.http_app import running_app
from tests.servers.model_service import ModelService, said, whole
from tests.serving.http.backend_faults import ERRORS, each_failing
from tests.serving.http.test_rights import routes
from tests.serving.web.browsing import Page, Visitor
from tests.storage.notebook import OAK, Notebook
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

PAGES = {
    "GET /": "/",
    "GET /search": "/search?q=oak&explain=1",
    "GET /search/compare": "/search/compare?q=oak&mode2=vector",
    "GET /documents": "/documents",
    "GET /documents/{document_id}": "/documents/DOCUMENT",
    "GET /documents/{document_id}/history": "/documents/DOCUMENT/history",
    "GET /documents/{document_id}/delete": "/documents/DOCUMENT/delete",
    "GET /add": "/add",
    "GET /add/jobs/{job_id}": "/add/jobs/JOB",
    "GET /add/states": "/add/states?job=JOB",
    "GET /runs": "/runs",
    "GET /runs/history/{run_id}": "/runs/history/RUN",
    "GET /runs/jobs/{job_id}": "/runs/jobs/PLAN",
    "GET /runs/versions": "/runs/versions",
    "GET /runs/versions/{version}": "/runs/versions/1",
    "GET /runs/versions/{version}/restore": "/runs/versions/1/restore",
    "GET /entries": "/entries",
    "GET /entries/{entry_id}": "/entries/ENTRY",
    "GET /entries/reviews": "/entries/reviews",
    "GET /entries/decisions/{decision_id}/undo": "/entries/decisions/DECISION/undo",
    "GET /admin": "/admin",
    "GET /quality": "/quality?list=duplicates",
    "GET /map": "/map?area=0,0,1,1",
    "GET /map/points": "/map/points",
    "GET /map/documents/{document_id}": "/map/documents/DOCUMENT",
    "GET /admin/tokens/{token_id}/revoke": "/admin/tokens/ID/revoke",
}
TURNS = '[["a1","oak","An oak table [1].","m",1,[["DOCUMENT",0]],false,""]]'
FORMS = {
    "POST /search/feedback": (
        "/search/feedback",
        {"q": "oak", "document": "DOCUMENT", "chunk": "CHUNK", "relevant": "yes"},
        None,
    ),
    "POST /ask": ("/ask", {"question": "oak", "model": "m"}, None),
    "POST /ask/judgement": ("/ask/judgement", {"turns": TURNS, "judge": "a1:good"}, None),
    "POST /add/files": ("/add/files", {}, {"file": ("ash.md", b"An ash bench.")}),
    "POST /add/known": ("/add/known", {"names": '["ash.md"]'}, None),
    "POST /add/jobs/{job_id}/cancel": ("/add/jobs/JOB/cancel", {}, None),
    "POST /add/text": ("/add/text", {"name": "elm", "text": "An elm stool."}, None),
    "POST /documents/{document_id}/delete": ("/documents/DOCUMENT/delete", {}, None),
    "POST /documents/selected": ("/documents/selected", {"action": "delete", "id": "DOCUMENT"}, None),
    "POST /documents/selected/confirmed": (
        "/documents/selected/confirmed",
        {"action": "retry", "ids": "DOCUMENT"},
        None,
    ),
    "POST /runs/plan": ("/runs/plan", {"run": "refresh"}, None),
    "POST /runs/start": ("/runs/start", {"plan": "PLAN"}, None),
    "POST /runs/retry": ("/runs/retry", {"stage": "extract", "reason": "damaged"}, None),
    "POST /runs/jobs/{job_id}/cancel": ("/runs/jobs/PLAN/cancel", {}, None),
    "POST /runs/versions/{version}/restore": ("/runs/versions/1/restore", {}, None),
    "POST /entries/learn": ("/entries/learn", {"review": "1"}, None),
    "POST /entries/decisions/{decision_id}/undo": ("/entries/decisions/DECISION/undo", {}, None),
    "POST /quality/analyze": ("/quality/analyze", {}, None),
    "POST /admin/tokens": ("/admin/tokens", {"name": "ash", "right-read": "1", "expires": "90d"}, None),
    "POST /admin/tokens/{token_id}/revoke": ("/admin/tokens/ID/revoke", {}, None),
    "POST /sign-in": ("/sign-in", {"token": "TOKEN"}, None),
    "POST /sign-out": ("/sign-out", {}, None),
}
"""route -> action of a form, its fields and files"""
ELSEWHERE = {
    "GET /sign-in": "asks nothing",
    "POST /documents/{document_id}/sync": "asks another service, then as POST /add/text",
    "POST /documents/undo": "is done once",
    "GET /documents/{document_id}/pages/{number}": "answers with an image",
    "GET /admin/audit": "reads its own file",
    "GET /admin/settings": "asks nothing",
    "GET /ask": "reads nothing before a question",
    "POST /ask/stream": "as POST /ask",
    "GET /runs/plan": "asks nothing",
    "POST /entries/reviews/{job_id}/{key}": "is answered once",
    "POST /add/url": "asks another service, then as POST /add/text",
}

LIKELY = {"chunks": 0, "tokens": 0, "cost_usd": 0.0}
PLAN = {
    "documents": {"unchanged": 1},
    "estimate": {"expected_usd": None, "cost_usd": 0.0, "unbounded": 0, "likely": LIKELY},
    **{name: [] for name in ("sources", "kept", "warnings", "space")},
}
"""result of a plan"""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("pages"))
    workshop.write("oak.md", "# Oak\n\nAn oak table.")
    workshop.write("bad.docx", b"PK\x03\x04 no document")
    run = workshop.refresh().run_id
    Notebook(SimpleNamespace(lake=Lake(str(workshop.root / "corpus"), create=True))).learn(OAK)
    analyze(Lake(str(workshop.root / "corpus")).snapshot(), workshop.settings.search)
    # Nothing carries jobs out here, so each deletion can be asked for again.
    tables = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": {"wait_seconds": 0.01}}
    with ModelService(rule=answer_of_model) as model:
        tables["upstream"] = {"base_url": model.base_url}
        yield from _running(tables, run)


def answer_of_model(asked):
    return whole({"data": []}) if asked.path == "/v1/models" else said("An oak table [1].")


def _running(tables, run):
    with running_app(parse_settings(tables, "test")) as app:
        with app.resources.follower.reader(wait=60) as reader:
            (row,) = reader.documents(names=["oak.md"])
            (chunk, *_) = reader.chunks(row["document_id"])
            ((decision,),) = tuples(reader.tables, "SELECT decision_id FROM decisions")
        plan = app.resources.jobs.submit("plan", None, {"run": "refresh"}, {})
        app.resources.jobs.claim({"plan"})
        app.resources.jobs.finish(plan.id, PLAN)
        job = app.resources.jobs.submit("ingest", "default", {"uploads": []}, {})
        plain = app.resources.tokens.create("root", rights=["admin"])[1]
        revoked = app.resources.tokens.create("revoked", rights=["read"])[0]
        app.filled = {
            "DOCUMENT": row["document_id"],
            "CHUNK": chunk["chunk_id"],
            "JOB": job.id,
            "ID": revoked.id,
            "TOKEN": plain,
        }
        app.filled |= {"RUN": run, "PLAN": plan.id, "ENTRY": OAK.entry_id, "DECISION": decision}
        yield app


def filled(app, text):
    for name, value in app.filled.items():
        text = text.replace(name, value)
    return text


def check_faults(app, ask, kind):
    tried = 0
    for call, answer in each_failing(app, ask, ERRORS[kind]):
        where = (call, answer.status_code, answer.text)
        assert answer.status_code >= 500, where
        assert answer.headers["content-type"].startswith("text/html"), where
        assert Page(answer).text, where
        assert "secret detail" not in answer.text, where
        tried += 1
    assert tried >= 1


@pytest.mark.parametrize("kind", sorted(ERRORS))
@pytest.mark.parametrize("route", PAGES)
def test_fault_behind_a_page_is_told(app, route, kind):
    visitor = Visitor(app.url)
    check_faults(app, lambda: visitor.client.get(filled(app, PAGES[route])), kind)


@pytest.mark.parametrize("kind", sorted(ERRORS))
@pytest.mark.parametrize("route", FORMS)
def test_fault_behind_a_form_is_told(app, route, kind):
    action, fields, files = FORMS[route]
    visit = new_visit()
    data = {"form_token": form_token(visit), **{name: filled(app, value) for name, value in fields.items()}}
    cookie = f"{app.resources.gate.cookie}={visit}"

    def ask():
        # Signing in and out changes the cookie; each form is sent as if it was the first.
        visitor = Visitor(app.url, Cookie=cookie, Origin=app.url)
        return visitor.client.post(filled(app, action), data=data, files=files)

    check_faults(app, ask, kind)


def test_no_route_of_the_dashboard_is_left_out(app):
    served = {f"{method} {path}" for method, path, _ in routes(app) if is_page(path)}
    assert served == PAGES.keys() | FORMS.keys() | ELSEWHERE.keys()


def is_page(path):
    return any(path == each or (each not in ("/", PREFIX) and path.startswith(f"{each}/")) for each in PATHS)
