"""The dashboard in a real browser: what scripts add, what the keyboard reaches, and an audit of accessibility."""

import struct
import threading
from dataclasses import replace

import pytest

from parquetry.serving.service.feedback import Judge
from parquetry.settings.sections import parse_settings
from parquetry.storage.analysis.analyze import analyze
from parquetry.storage.lake.lake import Lake
from tests.documentation import ROOT
from tests.servers.browser import chromium
from tests.servers.http_app import running_app, working_app
from tests.servers.model_service import ModelService, failing, silent, text_stream, whole
from tests.serving.web.conftest import HOSTILE, TEXTS
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
AXE = ROOT / ".node" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def analyzed(house):
    """Analyze the corpus as it is now."""
    settings = house.app.resources.settings
    return analyze(Lake(settings.corpus.root).snapshot(), settings.search, again=True)


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


@pytest.fixture
def open_page(new_page, house):
    """Return a function that opens a page of the house, or of another service."""

    def opened(path="/", *, base=house.url, **options):
        return new_page(base, path, **options)

    opened.told = new_page.told
    return opened


def document_link(page, name):
    return page.get_by_role("link", name=name, exact=True)


def test_search_answers_as_one_types_and_leads_to_the_passage(open_page):
    page = open_page("/search")
    page.keyboard.type("days of holiday")
    page.locator("mark", has_text="holiday").first.wait_for()
    assert "q=days%20of%20holiday" in page.url
    page.get_by_role("radio", name="Words", exact=True).check()
    page.wait_for_url("**mode=text**")
    page.get_by_role("link", name="Leave").first.click()
    page.wait_for_url("**/documents/**")
    assert "thirty days of holiday" in page.locator(".chosen").first.inner_text()


def test_result_is_judged_in_place_and_searches_are_explained_and_compared(open_page):
    page = open_page("/search?q=days+of+holiday")
    page.get_by_role("button", name="Relevant", exact=True).first.click()
    page.locator("button.yes[aria-pressed=true]").wait_for()
    # The keyboard stays where it was.
    assert page.evaluate("document.activeElement.textContent") == "Relevant"
    page.keyboard.press("Enter")
    page.locator("button.yes[aria-pressed=true]").wait_for(state="detached")
    page.get_by_label("Explain").check(force=True)
    page.get_by_role("heading", name="How these were found").wait_for()
    assert "explain=1" in page.url
    page.get_by_text("All ranks and scores", exact=True).click()
    assert page.get_by_role("cell", name="Result 1", exact=True).is_visible()
    page.get_by_role("link", name="Compare side by side").click()
    page.wait_for_url("**/search/compare?**")
    page.get_by_label("Search by").nth(1).select_option("vector")
    page.wait_for_url("**mode2=vector**")
    assert page.get_by_role("heading", name="Meaning", exact=True).is_visible()


def test_chat_is_streamed_leads_to_its_sources_is_judged_and_stopped(open_page, house):
    step, slow = threading.Semaphore(0), text_stream("Everybody has thirty days [1], as <b>written</b>.")
    stalled = silent(text_stream("It is a long story."), 4)
    script = [replace(slow, step=step), stalled, failing(429, "slow down")]
    settings = house.app.resources.settings
    listed = {"data": [{"id": "m"}]}
    with ModelService(rule=lambda asked: whole(listed) if asked.path == "/v1/models" else script.pop(0)) as service:
        told = {"corpus": {"root": settings.corpus.root}, "upstream": {"base_url": service.base_url}}
        with running_app(parse_settings(told, "test")) as app:
            page = open_page("/ask", base=app.url)
            page.keyboard.type("How many days of holiday?")
            page.keyboard.press("Enter")
            step.release(4)
            page.locator(".turn[aria-busy] .answer", has_text="Everybody has").wait_for()
            step.release(100)
            page.get_by_text("as <b>written</b>").wait_for()
            page.get_by_role("button", name="Good answer").click()
            page.locator("button.yes[aria-pressed=true]").wait_for()
            (judged,) = app.resources.feedback.answers()
            assert (judged.query, judged.good, judged.cited) == ("How many days of holiday?", True, 1)
            app.resources.feedback.judge_answer(Judge(), judged.answer_id, "", good=None)
            page.locator(".answer a.cite").click()
            assert page.evaluate("document.activeElement.id") == "source-1"
            for width, scheme in ((390, "dark"), (1280, "light")):
                page.set_viewport_size({"width": width, "height": 800})
                page.emulate_media(color_scheme=scheme)
                audited(page, width)
            field = page.get_by_label("Question")
            field.fill("And then?")
            field.press("Enter")
            page.locator(".turn[aria-busy] .answer", has_text="It is a").wait_for()
            page.keyboard.press("Escape")
            page.get_by_text("Stopped. Further questions go without this one.").wait_for()
            assert service.gone.wait(30)
            page.get_by_role("button", name="Ask", exact=True).click()
            page.get_by_role("alert").wait_for()
            assert "Wait a little, and ask again." in page.get_by_role("alert").inner_text()
            assert field.input_value() == "And then?"
            assert [each for each in open_page.told if "429" not in each] == []
            open_page.told.clear()
            page.locator(".source a").first.click()
            page.wait_for_url("**/documents/**")
            assert "thirty days of holiday" in page.locator(".chosen").first.inner_text()


def test_search_that_is_not_answered_is_told(open_page):
    page = open_page("/search")
    page.route("**/search?*", lambda route: route.abort())
    page.keyboard.type("oak")
    page.get_by_role("alert").wait_for()
    assert "The service cannot be reached" in page.get_by_role("alert").inner_text()
    page.unroute("**/search?*")
    page.keyboard.type(" table")
    page.locator("mark", has_text="oak").first.wait_for()
    assert page.get_by_role("alert").count() == 0
    assert [each for each in open_page.told if "net::ERR_FAILED" not in each and "htmx:" not in each] == []
    open_page.told.clear()


def test_files_are_uploaded_with_their_progress_and_failures_stay_until_dismissed(open_page, tmp_path):
    page = open_page("/add")
    (tmp_path / f"{HOSTILE}.txt").write_text("The numbat digs.")
    (tmp_path / "bad.docx").write_bytes(b"PK\x03\x04 no")
    with (tmp_path / "large.bin").open("wb") as large:
        large.truncate(34 * 1024 * 1024)
    page.set_input_files("#file", sorted(tmp_path.iterdir()))
    document_link(page, f"{HOSTILE}.txt").wait_for()
    page.locator(".addition.failed", has_text="bad.docx").wait_for()
    assert page.locator("#tally").inner_text() == "1 of 3 searchable, 2 failed"
    assert "not a whole file of its type" in page.locator(".addition.failed", has_text="bad.docx").inner_text()
    large = page.locator(".addition.failed", has_text="large.bin")
    assert "A document may have" in large.inner_text()
    page.get_by_role("button", name="Dismiss large.bin").click()
    assert large.count() == 0
    assert page.locator("img[src=x]").count() == 0
    document_link(page, f"{HOSTILE}.txt").click()
    assert "The numbat digs." in page.locator(".reading").inner_text()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("Deleted. You can undo this for an hour.").wait_for()
    page.get_by_role("button", name="Undo").first.click()
    page.get_by_text("What was deleted is back.").wait_for()
    document_link(page, f"{HOSTILE}.txt").wait_for()


def test_folder_that_is_dropped_is_read_to_its_depth_and_names_are_asked_about_before_they_are_replaced(
    open_page, tmp_path
):
    page = open_page("/add")
    folder = tmp_path / "zoo"
    (folder / "sea" / "warm").mkdir(parents=True)
    (folder / "sea" / "warm" / "dugong.txt").write_text("The dugong grazes.")
    (folder / "owl.txt").write_text("The owl hunts.")
    (folder / ".hidden").write_text("Nothing of this is sent.")
    drag(page, "dragEnter", folder)
    assert "over" in page.locator("#drop").get_attribute("class")
    drag(page, "drop", folder)
    document_link(page, "zoo/sea/warm/dugong.txt").wait_for()
    document_link(page, "zoo/owl.txt").wait_for()
    assert page.locator("#left-out").inner_text() == "1 hidden file of the folder was left out."
    (folder / "owl.txt").write_text("The owl sleeps.")
    (folder / "sea" / "warm" / "dugong.txt").write_text("The dugong is left as it is.")
    (folder / "eel.txt").write_bytes(b"The eel winds. " * 600_000)
    drag(page, "drop", folder)
    page.get_by_text("2 documents of this name are there already").wait_for()
    page.get_by_text("1 file larger than").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert page.locator("#tally").inner_text() == "2 of 2 searchable"
    drag(page, "drop", folder)
    for name in ("zoo/sea/warm/dugong.txt", "zoo/eel.txt"):
        page.get_by_role("checkbox", name=name).uncheck()
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_text("3 of 3 searchable").wait_for()
    page.goto(page.url.replace("/add", "/search?q=dugong+owl&mode=text"))
    told = page.locator(".results").inner_text()
    assert ("sleeps" in told, "hunts" in told) == (True, False)
    assert ("grazes" in told, "left as it is" in told) == (True, False)


def drag(page, kind, *paths):
    box = page.locator("#drop").bounding_box()
    place = {"x": box["x"] + 30, "y": box["y"] + 20}
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    session = page.context.new_cdp_session(page)
    for each in dict.fromkeys(("dragEnter", "dragOver", kind)):
        session.send("Input.dispatchDragEvent", {"type": each, **place, "data": data})


def test_folder_of_five_hundred_files_is_added_without_a_hang_and_what_waits_is_cancelled(open_page, tmp_path):
    page = open_page("/add")
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(500):
        (folder / f"{number:03}.txt").write_text(f"Board {number} of the stack.")
    page.set_input_files("#folder", folder)
    page.get_by_role("button", name="Cancel many/499.txt").click()
    page.locator(".addition", has_text="499.txt").get_by_text("Cancelled").wait_for()
    page.get_by_text("499 of 500 searchable, 1 cancelled").wait_for(timeout=200_000)
    assert page.locator(".addition").count() == 500
    page.get_by_role("button", name="Dismiss finished ones").click()
    page.locator("#queue").wait_for(state="hidden")
    page.goto(page.url.replace("/add", "/documents?q=many/"))
    assert "of 499 documents" in page.locator(".status").inner_text()


def test_upload_that_is_cancelled_is_not_there_whatever_it_had_come_to(open_page, house, tmp_path):
    page = open_page("/add")
    for number in range(30):
        (tmp_path / f"gnu {number}.txt").write_text("The gnu runs.")
    held = []
    page.route("**/add/files", lambda route: held.append(route))
    page.set_input_files("#file", sorted(tmp_path.iterdir()))
    page.locator(".addition progress:visible").nth(5).wait_for()
    page.get_by_role("button", name="Cancel all").click()
    page.get_by_text("0 of 30 searchable, 30 cancelled").wait_for()
    page.unroute("**/add/files")
    assert len(held) == 6
    assert [each.path for each in house.app.resources.uploads.each("default") if "gnu" in each.path] == []
    # Nothing carries out the jobs of this one.
    with running_app(parse_settings({"corpus": {"root": str(tmp_path / "corpus")}}, "test")) as app:
        page = open_page("/add", base=app.url)
        page.set_input_files("#file", tmp_path / "gnu 7.txt")
        page.get_by_text("Waiting to be read").wait_for()
        (kept,) = app.resources.uploads.each("default")
        page.get_by_role("button", name="Cancel gnu 7.txt").click()
        page.locator(".addition").get_by_text("Cancelled").wait_for()
        assert kept.path == "gnu 7.txt"
        assert list(app.resources.uploads.each("default")) == []


def test_address_of_a_video_is_recognised_as_one_types(open_page):
    page = open_page("/add")
    page.get_by_label("Address of a page").focus()
    told = page.locator("#address-kind")
    for address, kind in (
        ("https://example.com/a", "Web page"),
        ("https://youtu.be/x", "YouTube video: its captions are imported."),
        ("https://www.youtube.com/playlist?list=x", "YouTube, but no single video: give the address of one."),
        ("ftp://x", ""),
    ):
        page.keyboard.press("Control+A")
        page.keyboard.type(address)
        assert told.inner_text() == kind
    page.keyboard.press("Control+A")
    page.keyboard.type("http://127.0.0.1:9/page")
    page.keyboard.press("Enter")
    failed = page.locator(".addition.failed", has_text="http://127.0.0.1:9/page")
    failed.wait_for()
    assert "allow in [uploads]" in failed.inner_text()
    # The console tells the status of the refusal.
    assert [each for each in open_page.told if "status of 422" not in each] == []
    open_page.told.clear()


def test_keyboard_alone_finds_and_opens_a_document(open_page):
    page = open_page("/documents")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.keyboard.press("/")
    page.keyboard.type("leave.md")
    page.get_by_text("1–1 of 1 document").wait_for()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "leave.md":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url("**/documents/*-*")
    assert page.get_by_role("heading", name="Leave", exact=True).is_visible()


def test_token_is_asked_for_and_leads_to_the_page(open_page, tmp_path_factory, house):
    root = tmp_path_factory.mktemp("closed") / "corpus"
    settings = parse_settings({"corpus": {"root": str(root)}, "serve": {"token_required": True}}, "test")
    with working_app(settings) as app:
        plain = app.resources.tokens.create("ada", user_id="ada", rights=["search", "read", "write"])[1]
        page = open_page("/sign-in?next=/add", base=app.url)
        page.keyboard.type(plain)
        page.keyboard.press("Enter")
        page.wait_for_url("**/add")
        assert page.get_by_title("Signed in as").inner_text() == "ada"
        assert page.evaluate("document.cookie") == ""
        assert page.get_by_label("Seen by").first.locator("option").all_inner_texts() == ["Only me"]
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/sign-in")


def test_map_names_what_is_under_the_pointer_and_lists_an_area(open_page, mapped):
    page = open_page("/map", base=mapped)
    page.get_by_text("3 documents. Point at one").wait_for()
    assert page.locator("#map-legend li").count() == 1
    page.locator("#map-colour").select_option("type")
    assert page.locator("#map-legend li").all_inner_texts() == ["Markdown", "Text"]
    read = "fetch('/map/points').then((answer) => answer.arrayBuffer()).then((told) => [...new Uint8Array(told)])"
    told = bytes(page.evaluate(read))
    begin = 4 + int.from_bytes(told[:4], "little")
    # Three documents: x of each, then y.
    x, y = (struct.unpack_from("<H", told, begin + place)[0] for place in (0, 6))
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


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_audit_of_accessibility_finds_nothing_serious_and_nothing_is_wider_than_the_screen(
    open_page, analyzed, width, scheme
):
    page = open_page("/", width=width, scheme=scheme)
    link = "/documents?q=leave"
    for path in (
        "/",
        "/search?q=holiday&explain=1",
        "/search/compare?q=holiday&where=1%3D1",
        "/ask",
        link,
        "/add",
        "/map?cluster=0",
        "/quality?list=duplicates",
        "/admin",
        "/admin/audit",
        "/admin/settings",
        "/sign-in",
    ):
        page.goto(page.url.partition("/")[0] + "//" + page.url.split("/")[2] + path)
        audited(page, width)
    page.goto(page.url.rpartition("/")[0] + link)
    document_link(page, "leave.md").click()
    page.wait_for_url("**/documents/*-*")
    audited(page, width)
    page.get_by_role("link", name="Versions").click()
    page.wait_for_url("**/history")
    audited(page, width)
    page.go_back()
    page.get_by_role("link", name="Delete").click()
    page.wait_for_url("**/delete")
    audited(page, width)
    page.goto(page.url.partition("/documents")[0] + link)
    page.get_by_role("checkbox", name="Select leave.md").check()
    assert page.locator("#selected-count").inner_text() == "1 selected"
    page.locator("#selected").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/selected")
    audited(page, width)


def audited(page, width):
    # The policy of the page forbids scripts that are inserted; the browser runs this one beside it.
    page.evaluate(AXE.read_text("utf-8") + "; 0")
    found = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert [(each["id"], page.url) for each in found["violations"] if each["impact"] in SERIOUS] == []
    assert len(found["passes"]) > 10
    assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url


def test_browser_is_not_left_out_in_ci(monkeypatch):
    """With `CI` set, a missing browser fails."""
    monkeypatch.setattr("tests.servers.browser.CHROMIUM", None)
    for value, outcome in (("1", pytest.fail.Exception), ("", pytest.skip.Exception)):
        monkeypatch.setenv("CI", value)
        with pytest.raises(outcome, match="apt-get install"), chromium():
            pass
