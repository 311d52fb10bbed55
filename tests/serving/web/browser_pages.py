"""Pages in a real browser: what tests look for in them, an audit of accessibility, and a walk by the Tab key."""

from __future__ import annotations

from typing import Any

from tests.documentation import ROOT

AXE = ROOT / ".node" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
_BEGIN = """() => {
    const operable = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
    const first = (radio) => document.querySelector(`input[name="${radio.name}"]:checked`) === radio;
    const isWanted = (each) => !each.disabled && each.checkVisibility({visibilityProperty: true})
        && (each.type !== "radio" || first(each));
    const wanted = [...document.querySelectorAll(operable)].filter(isWanted);
    const shown = (each) => getComputedStyle(each).opacity !== "0";
    const lined = (each) => each && shown(each) && getComputedStyle(each).outlineStyle !== "none"
        && parseFloat(getComputedStyle(each).outlineWidth) > 0;
    const covered = (here) => {
        const box = here.getBoundingClientRect();
        const x = (Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2;
        const top = document.elementFromPoint(x, box.top + Math.min(box.height, 20) / 2);
        return shown(here) && !(top && (here.contains(top) || top.contains(here)));
    };
    const named = (each) => each.outerHTML.slice(0, 160);
    window.walk = {left: new Set(wanted), faults: [], told: () => [...walk.left].map(named)};
    // What has the focus is looked at when the next key leaves it: the page has scrolled by then.
    document.addEventListener("keydown", (event) => {
        const here = document.activeElement;
        if (event.key !== "Tab" || !walk.left.delete(here)) return;
        const isLined = [here, here.nextElementSibling, here.parentElement].some(lined);
        if (!isLined) walk.faults.push("no visible focus: " + named(here));
        if (covered(here)) walk.faults.push("covered: " + named(here));
    }, true);
    // The walk begins before the first of them, whatever the page has focused or the test has clicked.
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
    // Each part of a date takes a step.
    return wanted.length + 4 * document.querySelectorAll("input[type=date]").length;
}"""


def document_link(page: Any, name: str) -> Any:
    """Return the link to a document in a list."""
    return page.get_by_role("link", name=name, exact=True)


def audited(page: Any, width: int) -> None:
    """Check that an audit finds nothing serious, light and dark, and that the page is not wider than the screen."""
    # The policy of the page forbids scripts that are inserted; the browser runs this one beside it.
    page.evaluate(AXE.read_text("utf-8") + "; 0")
    found = page.evaluate("axe.run({resultTypes: ['violations']})")
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate("axe.run({resultTypes: ['violations'], runOnly: ['color-contrast']})")
    page.emulate_media(color_scheme="light")
    faults = [each for each in (*found["violations"], *dark["violations"]) if each["impact"] in SERIOUS]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in faults] == [], page.url
    assert len(found["passes"]) > 10
    assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url


def walked(page: Any) -> None:
    """Check that Tab reaches everything that can be operated, each with a visible focus, uncovered."""
    # A page that scrolls smoothly may still be on its way to what has the focus when the next key comes.
    page.emulate_media(reduced_motion="reduce")
    for _ in range(page.evaluate(_BEGIN) + 1):
        page.keyboard.press("Tab")
    assert (page.url, page.evaluate("walk.faults"), page.evaluate("walk.told()")) == (page.url, [], [])
