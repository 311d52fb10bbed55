"""Documents in a real browser, by keyboard alone."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


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
