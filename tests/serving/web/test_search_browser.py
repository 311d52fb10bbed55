"""Search in a real browser: what scripts add to it."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


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
