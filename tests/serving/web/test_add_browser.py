"""Add in a real browser: files, folders and addresses on their way, with what becomes of each."""

import pytest
from playwright.sync_api import Route

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app, working_app
from tests.servers.web_server import Page, WebServer
from tests.serving.web.browser_pages import document_link
from tests.serving.web.conftest import HOSTILE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_files_are_uploaded_with_their_progress_and_failures_stay_until_dismissed(open_page, tmp_path):
    page = open_page("/add")
    (tmp_path / f"{HOSTILE}.txt").write_text("The numbat digs.")
    (tmp_path / "bad.docx").write_bytes(b"PK\x03\x04 no")
    with (tmp_path / "large.bin").open("wb") as large:
        large.truncate(34 * 1024 * 1024)
    page.set_input_files("#file", sorted(tmp_path.iterdir()))
    document_link(page, f"{HOSTILE}.txt").wait_for()
    page.locator("#tally").get_by_text("1 of 3 searchable, 2 failed", exact=True).wait_for()
    told = page.locator(".addition.failed", has_text="bad.docx").inner_text()
    assert "not a whole file of its type" in told
    assert "What to do: Replace the file by a whole one, and add it again." in told
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
    page.locator("#tally").get_by_text("2 of 2 searchable", exact=True).wait_for()
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
    # On a fast machine, or by a slow click, the last file would be on its way when it is cancelled.
    held, cancelled = list[Route](), False
    page.route("**/add/files", lambda route: route.continue_() if cancelled else held.append(route))
    page.set_input_files("#folder", folder)
    page.locator('[aria-label="Cancel many/499.txt"]').click()
    page.locator(".addition", has_text="499.txt").get_by_text("Cancelled").wait_for()
    cancelled = True
    for route in held:
        route.continue_()
    page.get_by_text("499 of 500 searchable, 1 cancelled").wait_for(timeout=200_000)
    assert page.locator(".addition").count() == 500
    page.locator("#dismiss-done").click()
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
    settings = {"corpus": {"root": str(tmp_path / "corpus")}, "llm": {"model": "m"}}
    with running_app(parse_settings(settings, "test")) as app:
        page = open_page("/add", base=app.url)
        page.get_by_label("Have the language model describe pictures").press("Space")
        (tmp_path / "gnu.png").write_bytes(b"\x89PNG")
        page.set_input_files("#file", tmp_path / "gnu.png")
        page.get_by_text("Waiting to be read").wait_for()
        (kept,) = app.resources.uploads.each("default")
        page.get_by_role("button", name="Cancel gnu.png").click()
        page.locator(".addition").get_by_text("Cancelled").wait_for()
        assert (kept.path, kept.describe) == ("gnu.png", True)
        assert list(app.resources.uploads.each("default")) == []


def test_page_is_imported_by_its_address_and_fetched_again_and_text_is_pasted(open_page, tmp_path):
    rules = {"Content-Type": "text/html"}
    with WebServer({"/rules": Page("<title>Rules</title><p>The gate opens at nine.</p>", headers=rules)}) as web:
        settings = {"corpus": {"root": str(tmp_path / "corpus")}, "uploads": {"allow": [web.place]}}
        with working_app(parse_settings(settings, "test")) as app:
            page = open_page("/add", base=app.url)
            page.get_by_label("Address of a page").focus()
            page.keyboard.type(f"{web.url}/rules")
            page.keyboard.press("Enter")
            page.get_by_text("1 of 1 searchable").wait_for()
            page.locator(".addition a").click()
            page.locator(".piece", has_text="opens at nine").wait_for()
            web.pages["/rules"] = Page("<title>Rules</title><p>The gate opens at ten.</p>", headers=rules)
            page.get_by_role("button", name="Fetch again now").press("Enter")
            page.locator(".addition.searchable a").click()
            page.locator(".piece", has_text="opens at ten").wait_for()
            assert page.locator(".facts .badge", has_text="URL").count() == 1
            page.goto(f"{app.url}/add")
            page.get_by_label("Name", exact=True).fill("note")
            page.get_by_label("Text or Markdown").fill("The gate is <b>green</b>.")
            page.get_by_role("button", name="Add text").press("Enter")
            page.locator(".addition a").click()
            page.locator(".piece", has_text="The gate is <b>green</b>.").wait_for()


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
