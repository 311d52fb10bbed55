"""Additions without scripts: pictures are described if one chooses so, and what was imported is fetched again."""

import io
import re
import time

import pytest
from PIL import Image

from parquetry.settings.sections import parse_settings
from tests.servers.chat_server import ChatServer, said
from tests.servers.http_app import working_app
from tests.servers.web_server import Page as WebPage
from tests.servers.web_server import WebServer
from tests.serving.web.browsing import Visitor

pytestmark = pytest.mark.slow
CRANE = "A yellow crane lifts oak boards from a barge."


def picture(color):
    made = io.BytesIO()
    Image.new("RGB", (40, 30), color).save(made, "PNG")
    return made.getvalue()


def settled(visitor, page):
    """Wait until what was handed in has its end."""
    end = time.monotonic() + 120
    while "on their way" in page.text:
        assert time.monotonic() < end, page.text
        time.sleep(0.05)
        page = visitor.open(page.response.url.path)
    return page


def document_of(page):
    (found,) = [link for link in page.links if re.fullmatch(r"/documents/[0-9a-f-]{36}", link)]
    return found


@pytest.mark.parametrize("usual", [False, True], ids=["seldom", "usually"])
def test_picture_is_described_if_it_is_marked_whatever_the_settings_say(tmp_path, usual):
    with ChatServer([said(CRANE)]) as model:
        tables = {
            "corpus": {"root": str(tmp_path / "corpus")},
            "llm": {"model": "m", "base_url": model.url, "attempts": 1},
            "extraction": {"workers": 1, "ocr": False, "include_image_descriptions": usual},
        }
        with working_app(parse_settings(tables, "test")) as app:
            visitor = Visitor(app.url)
            form = visitor.open("/add").form("/add/files")
            # The mark stands as the settings say.
            assert ("describe" in form.values) == usual
            for name, choice in (("plain.png", {}), ("crane.png", {"describe": "on"})):
                form.values.pop("describe", None)
                page = settled(visitor, visitor.send(form, files={"file": (name, picture(len(name)))}, **choice))
                assert (CRANE in visitor.open(document_of(page)).text) == bool(choice), page.text
    assert len(model.bodies) == 1


def rules(hour):
    text = f"<html><title>Rules</title><body><p>The gate opens at {hour} in the morning.</p></body></html>"
    return WebPage(text, headers={"Content-Type": "text/html"})


def test_page_that_was_imported_is_fetched_again_on_demand(tmp_path):
    with WebServer({"/rules": rules("nine")}) as web:
        tables = {"corpus": {"root": str(tmp_path / "corpus")}, "extraction": {"workers": 1}}
        with working_app(parse_settings({**tables, "uploads": {"allow": [web.place]}}, "test")) as app:
            visitor = Visitor(app.url)
            page = settled(visitor, visitor.send(visitor.open("/add").form("/add/url"), url=f"{web.url}/rules"))
            document = document_of(page)
            assert "opens at nine" in visitor.open(document).text
            web.pages["/rules"] = rules("ten")
            again = settled(visitor, visitor.send(visitor.open(document).form(f"{document}/sync")))
            assert document_of(again) == document
            assert "opens at ten" in visitor.open(document).text
            assert web.paths() == ["/rules", "/rules"]
            difference = visitor.open(f"{document}/history").text
            assert re.search("removed The gate opens at nine.* added The gate opens at ten", difference)
            # Of a page that is gone, the last text stays.
            web.pages.clear()
            refused = visitor.send(visitor.open(document).form(f"{document}/sync"))
            assert refused.status == 422
            assert "is not there" in refused.text
            assert "opens at ten" in visitor.open(document).text
