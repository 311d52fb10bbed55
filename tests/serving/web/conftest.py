"""One application over a corpus with documents of strangers, for the tests of this room."""

import re
from types import SimpleNamespace

import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.browser import chromium
from tests.servers.http_app import working_app
from tests.serving.web.browsing import Visitor
from tests.workshop import Workshop

SECONDS = 120_000
"""milliseconds that a busy machine may take for a step of a browser"""
HOSTILE = "<img src=x onerror=alert(1)>"
"""a name and text that would run a script in a page that does not escape it"""
TEXTS = {
    "leave.md": "# Leave\n\nEverybody has thirty days of holiday.\n\n## Moving\n\nOne more day for moving house.\n",
    "oak.txt": "The oak table has four legs and costs 640 euros.",
    f"{HOSTILE}.md": f"# {HOSTILE}\n\nThe walnut <script>alert(2)</script> is \u202edark\u202c & heavy.\n",
    "broken.docx": b"PK\x03\x04 this is no document at all",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Run an application, with its jobs, that serves this machine without a token."""
    workshop = Workshop(tmp_path_factory.mktemp("house"))
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    settings = parse_settings({"corpus": {"root": str(workshop.root / "corpus")}, "extraction": {"workers": 1}}, "test")
    with working_app(settings) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield SimpleNamespace(app=app, url=app.url)


@pytest.fixture(autouse=True)
def _visitors_leave():
    yield
    while Visitor.opened:
        Visitor.opened.pop().close()


@pytest.fixture
def visitor(house):
    return Visitor(house.url)


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def new_page(browser):
    """Return a function that opens a page; at the end, nothing failed in it and nothing was asked of another host."""
    contexts, told, asked = [], [], []

    def opened(base, path="/", *, width=1280, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(SECONDS)
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(base + path)
        return page

    opened.told = told
    yield opened
    for each in contexts:
        each.close()
    assert told == []
    assert asked
    assert [url for url in asked if not re.match(r"http://127\.0\.0\.1:\d+/", url)] == []


@pytest.fixture
def open_page(new_page, request):
    """Return a function that opens a page of the house, or of another service."""

    def opened(path="/", *, base=None, **options):
        return new_page(base or request.getfixturevalue("house").url, path, **options)

    opened.told = new_page.told
    return opened
