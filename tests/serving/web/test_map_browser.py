"""The map in a real browser, by pointer and by keyboard."""

import base64
import struct

import pytest

from parquetry.settings.sections import parse_settings
from parquetry.storage.analysis.analyze import analyze
from tests.servers.http_app import running_app
from tests.serving.web.conftest import TEXTS
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """Run an application over three documents that were analyzed, and nothing else."""
    workshop = Workshop(tmp_path_factory.mktemp("mapped"))
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    analyze(workshop.lake.snapshot(), workshop.settings.search)
    with running_app(parse_settings({"corpus": {"root": str(workshop.root / "corpus")}}, "test")) as app:
        yield app.url


def test_map_names_what_is_under_the_pointer_and_lists_an_area(open_page, mapped):
    page = open_page("/map", base=mapped)
    page.get_by_text("3 documents. Point at one").wait_for()
    assert page.locator("#map-legend li").count() == 1
    page.locator("#map-colour").select_option("type")
    assert page.locator("#map-legend li").all_inner_texts() == ["Markdown", "Text"]
    told = page.evaluate("fetch('/map/points').then((answer) => answer.json())")
    x, y = struct.unpack_from("<HH", base64.b64decode(told["points"]))
    box = page.locator("#map").bounding_box()
    inner = (box["width"] - 48, box["height"] - 48)
    across, down = box["x"] + 24 + x / 65535 * inner[0], box["y"] + 24 + y / 65535 * inner[1]
    page.mouse.move(across, down)
    page.locator("#map-card strong").wait_for()
    name = page.locator("#map-card strong").inner_text()
    page.mouse.click(across, down)
    page.wait_for_url("**/documents/*-*")
    assert page.get_by_role("heading", name=name, exact=True).is_visible()
    page.goto(page.url.partition("/documents")[0] + "/map")
    page.get_by_text("3 documents. Point at one").wait_for()
    page.get_by_role("button", name="Select an area").click()
    page.mouse.move(across - 20, down - 20)
    page.mouse.down()
    page.mouse.move(across + 20, down + 20, steps=3)
    page.mouse.up()
    page.get_by_role("heading", name="1 document in the area").wait_for()
    assert page.locator("#chosen").get_by_role("link", name=name, exact=True).count() == 1


def test_map_is_moved_and_listed_by_keyboard(open_page, mapped):
    page = open_page("/map", base=mapped)
    page.get_by_text("3 documents. Point at one").wait_for()
    page.locator("#map").focus()
    for key in ("+", "+", "ArrowLeft", "-", "-", "-", "Enter"):
        page.keyboard.press(key)
    page.get_by_role("heading", name="3 documents in the area").wait_for()


def test_points_that_cannot_be_loaded_are_told(open_page, mapped):
    page = open_page("/search", base=mapped)
    page.route("**/map/points", lambda route: route.abort())
    page.goto(page.url.replace("/search", "/map"))
    page.get_by_text("The points of the map cannot be loaded").wait_for()
    assert [each for each in open_page.told if "net::ERR_FAILED" not in each] == []
    open_page.told.clear()
