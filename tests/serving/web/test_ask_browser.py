"""Ask in a real browser: a chat that is streamed, leads to its sources, and is stopped."""

import threading
from dataclasses import replace

import pytest

from parquetry.serving.service.feedback import Judge
from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.servers.model_service import ModelService, failing, silent, text_stream, whole
from tests.serving.web.browser_pages import audited

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


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
            assert service.gone.wait(120)
            page.get_by_role("button", name="Ask", exact=True).click()
            page.get_by_role("alert").wait_for()
            assert "Wait a little, and ask again." in page.get_by_role("alert").inner_text()
            assert field.input_value() == "And then?"
            assert [each for each in open_page.told if "429" not in each] == []
            open_page.told.clear()
            page.locator(".source a").first.click()
            page.wait_for_url("**/documents/**")
            assert "thirty days of holiday" in page.locator(".chosen").first.inner_text()
