"""Times of the map in a browser: until its points are drawn, of a frame while it moves, and of what it answers.

    python -m benchmarks.dashboard_map [--documents 51000] [--corpus FOLDER]

The corpus is that of `benchmarks.dashboard`, of which 98 in 100 documents are on the map. Chromium draws without a
graphics processor. Frames are those that the browser shows while the map is moved by the mouse and zoomed by keys; the
time of a drawing is that of its script alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.conditions import conditions, write_result
from benchmarks.dashboard import Service, build_once

RESULT = "dashboard-map"
_PACKAGES = ("parquetry", "playwright")
_WATCH = """
window.told = {frames: [], drawings: [], last: 0};
const request = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => request((at) => {
  const begun = performance.now();
  draw(at);
  window.told.drawings.push(performance.now() - begun);
});
const frame = (at) => {
  if (window.told.last) window.told.frames.push(at - window.told.last);
  window.told.last = at;
  request(frame);
};
request(frame);
"""
"""notes the time between frames, and of each drawing"""


def measure(service: Service, rounds: int) -> dict[str, Any]:
    """Return milliseconds in the browser."""
    from playwright.sync_api import sync_playwright

    found: dict[str, list[float]] = {name: [] for name in ("first_paint", "points_drawn", "hover", "selection")}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(rounds):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.add_init_script(_WATCH)
            page.goto(f"{service.url}/map")
            page.get_by_text("Point at one").wait_for()
            while not page.evaluate("window.told.drawings.length"):
                time.sleep(0.02)
            painted = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            found["first_paint"].append(page.evaluate(painted))
            found["points_drawn"].append(page.evaluate("performance.now()"))
            moved = _moved(page)
            for name, times in moved.items():
                found.setdefault(name, []).extend(times)
            page.close()
        browser.close()
    return {name: _summed(times) for name, times in found.items()}


def _moved(page: Any) -> dict[str, list[float]]:
    """Move, zoom, point and select; return milliseconds."""
    box = page.locator("#map").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    found: dict[str, list[float]] = {}
    for name, act in (("moving", _drag), ("zooming", _zoom)):
        page.evaluate("Object.assign(window.told, {frames: [], drawings: []})")
        act(page, middle)
        told = page.evaluate("window.told")
        found[f"{name}_frame"], found[f"{name}_drawing"] = told["frames"], told["drawings"]
    page.locator("#map-all").click()
    found["hover"] = _pointed(page, box)
    started = time.perf_counter()
    page.get_by_role("button", name="Select an area").click()
    page.mouse.move(middle[0] - 60, middle[1] - 60)
    page.mouse.down()
    page.mouse.move(middle[0] + 60, middle[1] + 60, steps=4)
    page.mouse.up()
    page.get_by_text("in the area").wait_for()
    found["selection"] = [1000 * (time.perf_counter() - started)]
    return found


def _drag(page: Any, middle: tuple[float, float]) -> None:
    page.mouse.move(*middle)
    page.mouse.down()
    for step in range(60):
        page.mouse.move(middle[0] + 3 * step, middle[1] + step)
    page.mouse.up()


def _zoom(page: Any, _: tuple[float, float]) -> None:
    page.locator("#map").focus()
    for _each in range(8):
        page.keyboard.press("+")
        time.sleep(0.05)
    for _each in range(8):
        page.keyboard.press("-")
        time.sleep(0.05)


def _pointed(page: Any, box: dict[str, float]) -> list[float]:
    """Return milliseconds from a movement of the pointer to the name of the document under it."""
    found = []
    for step in range(40):
        at = (box["x"] + box["width"] * (0.2 + 0.015 * step), box["y"] + box["height"] * (0.3 + 0.01 * step))
        page.mouse.move(box["x"] + 2, box["y"] + 2)
        page.locator("#map-card").wait_for(state="hidden")
        started = time.perf_counter()
        page.mouse.move(*at)
        if page.locator("#map.over").count():
            page.locator("#map-card strong").wait_for()
            found.append(1000 * (time.perf_counter() - started))
    return found


def _summed(times: Sequence[float]) -> dict[str, Any]:
    return {
        "times": len(times),
        "p50_ms": round(statistics.median(times), 1) if times else None,
        "p95_ms": round(float(np.percentile(times, 95)), 1) if times else None,
        "all_ms": [round(each, 1) for each in times],
    }


def main() -> None:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=51_000)
    parser.add_argument("--corpus", type=Path, help="folder that keeps the corpus for another time")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = asked.corpus or Path(made)
        scene = build_once(folder / "corpus", asked.documents)
        service = Service(folder / "corpus")
        try:
            load = os.getloadavg()
            sent = len(service.client.get("/map/points").content)
            found = measure(service, asked.rounds)
        finally:
            service.stop()
    for name, each in found.items():
        print(f"{name}: p50 {each['p50_ms']} ms, p95 {each['p95_ms']} ms, {each['times']} times")
    told = {
        **conditions(_PACKAGES),
        "load_before": load,
        "load_after": os.getloadavg(),
        "points": len(scene.documents),
        "bytes_of_points": sent,
        "browser": found,
    }
    print(write_result(RESULT, told))


if __name__ == "__main__":
    main()
