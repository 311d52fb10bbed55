"""No URL that a request names leads inside, and no name or id leads out of where it belongs."""

import pytest

from parquetry.settings.sections import parse_settings
from tests.net.test_web_ssrf import LOOPBACK_SPELLINGS, OTHERS, WHOLE
from tests.servers.http_app import running_app
from tests.servers.web_server import RawServer
from tests.serving.http.checks import ok, problem
from tests.workshop import Workshop

TRAVERSALS = [
    "../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "....//....//etc/passwd",
    "%2e%2e/%2e%2e/etc/passwd",
    "/etc/passwd",
    "..\\..\\windows\\win.ini",
    "C:\\windows\\win.ini",
    "file:///etc/passwd",
    "a%00b",
    ".",
    "..",
    "'; DROP TABLE documents; --",
    "%' OR '1'='1",
    "x" * 300,
]


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("inside"))
    workshop.write("oak.md", "An oak table.")
    workshop.refresh()
    # Writes are kept and queued; nothing carries them out here.
    settings = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": {"wait_seconds": 0.01}}
    with running_app(parse_settings(settings, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        app.folder = workshop.root
        yield app


def test_no_import_reaches_an_inner_address(app):
    urls = [*(f"http://{host}{{port}}/" for host in (*LOOPBACK_SPELLINGS, *OTHERS)), *WHOLE]
    with RawServer() as canary, app.client() as client:
        for url in urls:
            for port in (f":{canary.port}", "") if "{port}" in url else ("",):
                response = client.post("/api/knowledge/documents/url", json={"url": url.replace("{port}", port)})
                # A name that nothing here resolves may be resolved at another time.
                assert response.status_code in (422, 503), (url, response.text)
                assert response.headers["content-type"] == "application/problem+json", url
        assert canary.connections == 0
    assert not list((app.folder / "corpus").glob("uploads/*/*"))


@pytest.mark.parametrize("scheme", ["ftp", "file", "gopher", "dict", "ldap", "data", "javascript", "s3", "unix"])
def test_only_the_web_is_imported_from(app, scheme):
    with app.client() as client:
        response = client.post("/api/knowledge/documents/url", json={"url": f"{scheme}://127.0.0.1/etc/passwd"})
        assert response.status_code == 422, response.text


@pytest.mark.parametrize("name", TRAVERSALS)
def test_no_id_leads_anywhere(app, name):
    with app.client() as client:
        for path in (
            "/api/knowledge/documents/{}",
            "/api/knowledge/fragments/{}",
            "/api/v1/knowledge/{}/documents",
            "/api/v1/knowledge/default/documents/{}",
            "/api/v1/jobs/{}",
            "/api/v1/runs/{}",
        ):
            response = client.get(path.format(name))
            assert response.status_code in (404, 422, 200), (path, response.text)
            assert "root:" not in response.text
            if response.status_code == 200:
                # The name was normalised to another route.
                assert name in (".", ".."), path


@pytest.mark.parametrize("name", TRAVERSALS)
def test_no_name_of_an_upload_leads_out_of_its_folder(app, name):
    before = {path for path in app.folder.rglob("*") if "uploads" not in path.parts and "service" not in path.parts}
    with app.client() as client:
        sent = {"content": "An ash bench.", "filename": name}
        response = client.post("/api/knowledge/documents", json=sent)
        assert response.status_code in (202, 422), response.text
        documents = {"documents": [{"text": "An elm stool.", "source": name}]}
        assert client.post("/api/v1/knowledge/default/documents", json=documents).status_code in (202, 422)
        problem(
            client.post("/api/knowledge/documents", json=sent, params={"namespace": "../../up"}),
            404,
            "no-such-namespace",
        )
    after = {path for path in app.folder.rglob("*") if "uploads" not in path.parts and "service" not in path.parts}
    assert after == before


def test_namespace_of_a_path_is_a_name_and_nothing_else(app):
    with app.client() as client:
        assert ok(client.get("/api/v1/knowledge/never-was/documents"))["documents"] == []
        for name in ("a b", "a%2Fb", "a;b", "ü" * 300):
            assert client.get(f"/api/v1/knowledge/{name}/documents").status_code in (404, 422)
