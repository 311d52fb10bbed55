"""One application over a corpus with documents of strangers, for the tests of this room."""

from types import SimpleNamespace

import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import working_app
from tests.serving.web.browsing import Visitor
from tests.workshop import Workshop

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
