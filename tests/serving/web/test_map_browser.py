"""The map in a real browser, by pointer and by keyboard."""

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


def places_of(page):
    """Places of the three documents on the screen."""
    read = "fetch('/map/points').then((answer) => answer.arrayBuffer()).then((told) => [...new Uint8Array(told)])"
    told = bytes(page.evaluate(read))
    numbers = struct.unpack_from("<6H", told, 4 + int.from_bytes(told[:4], "little"))
    box = page.locator("#map").bounding_box()
    inner = (box["width"] - 48, box["height"] - 48)
    return [
        (box["x"] + 24 + x / 65535 * inner[0], box["y"] + 24 + y / 65535 * inner[1])
        for x, y in zip(numbers[:3], numbers[3:], strict=True)
    ]


def test_points_have_the_colours_of_the_legend_and_move_with_the_map(open_page, mapped):
    page = open_page("/map", base=mapped)
    page.get_by_text("3 documents. Point at one").wait_for()
    colour = """([x, y]) => {
        const box = document.getElementById("map").getBoundingClientRect();
        return [...document.getElementById("map").getContext("2d").getImageData(x - box.x, y - box.y, 1, 1).data];
    }"""
    places = places_of(page)
    shown = "document.getElementById('map').getContext('2d').getImageData(0, 0, 2000, 1000).data.some((each) => each)"
    page.wait_for_function(shown)
    hexadecimal = page.locator("#map-legend circle").first.get_attribute("fill")
    legend = [int(hexadecimal[place : place + 2], 16) for place in (1, 3, 5)]
    for place in places:
        *found, opacity = page.evaluate(colour, place)
        assert opacity > 200
        assert all(abs(one - other) <= 2 for one, other in zip(found, legend, strict=True)), (found, legend)
    page.locator("#map").focus()
    page.keyboard.press("+")
    page.wait_for_function(
        f"""() => ({colour})({list(places[0])})[3] === 0 || ({colour})({list(places[1])})[3] === 0"""
    )


def test_map_names_what_is_under_the_pointer_and_lists_an_area(open_page, mapped):
    page = open_page("/map", base=mapped)
    page.get_by_text("3 documents. Point at one").wait_for()
    assert page.locator("#map-legend li").count() == 1
    page.locator("#map-colour").select_option("type")
    assert page.locator("#map-legend li").all_inner_texts() == ["Markdown", "Text"]
    (across, down), *_ = places_of(page)
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
