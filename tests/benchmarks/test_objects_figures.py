"""The figures of many objects that pages tell are those of the result files."""

import json
import re

import pytest

from tests.documentation import ROOT

RESULTS = ROOT / "benchmarks" / "results"
STEPS = {
    "plan, nothing known yet": "plan",
    "refresh of all": "full",
    "the same before": "full",
    "plan, nothing changed": "plan_unchanged",
    "refresh, nothing changed": "unchanged",
}
NO_RESULT = "0079-a-plan-waits-in-a-file.md"
"""decision named by the row whose figures are of before results were kept"""


def section(page, title):
    text = (ROOT / page).read_text("utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows():
    """Return the label and cells of each row of the table of many objects."""
    found = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in section("benchmarks/README.md", "Many objects").splitlines()
        if line.startswith("| ")
    ]
    return [(label, cells) for label, *cells in found[2:] if NO_RESULT not in label]


def step(label):
    """Return what the result file has of a row."""
    named = re.search(r"results/([\w-]+\.json)", label)
    (kind,) = (kind for start, kind in STEPS.items() if label.startswith(start))
    return json.loads((RESULTS / (named[1] if named else "objects.json")).read_text("utf-8"))["steps"][kind]


def rounded(value):
    """Return a figure as tables show it: with three digits, or one after the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


@pytest.mark.parametrize(("label", "cells"), rows(), ids=[label[:40] for label, _ in rows()])
def test_row_has_the_figures_of_its_result_file(label, cells):
    found = step(label)
    told = [rounded(found["wall_seconds"]), rounded(found["processor_seconds"]), f"{found['peak_pss_mb']:.0f} MB"]
    assert cells[:3] == told
    asked = re.findall(r"([\d,]+) ([A-Z]+)", cells[3])
    assert {name: int(count.replace(",", "")) for count, name in asked} == found["requests"]


def test_all_kinds_of_rows_are_compared():
    assert {next(start for start in STEPS if label.startswith(start)) for label, _ in rows()} == STEPS.keys()


def test_pages_tell_what_three_times_as_many_took():
    steps = json.loads((RESULTS / "objects-many.json").read_text("utf-8"))["steps"]
    seconds = {name: rounded(found["wall_seconds"]) for name, found in steps.items()}
    memory = {name: f"{found['peak_pss_mb']:.0f} MB" for name, found in steps.items()}
    processor = f"{rounded(steps['full']['processor_seconds'])} s of processor"
    page = " ".join(section("benchmarks/README.md", "Many objects").split())
    assert (
        f"planned in {seconds['plan']} s and {memory['plan']}; "
        f"read and indexed for the first time in {seconds['full']} s, {processor} and {memory['full']}; "
        f"planned again with nothing changed in {seconds['plan_unchanged']} s and {memory['plan_unchanged']}, "
        f"refreshed in {seconds['unchanged']} s and {memory['unchanged']}."
    ) in page
    assert f"| {processor}, {seconds['full']} s; {memory['full']} |" in section("docs/growth.md", "What was measured")


def test_pages_tell_the_first_refresh_of_the_table():
    full = step("refresh of all")
    seconds, memory = rounded(full["wall_seconds"]), f"{full['peak_pss_mb']:.0f} MB"
    page = " ".join((ROOT / "docs/sources-s3.md").read_text("utf-8").split())
    assert f"read and indexed for the first time in {seconds} s and {memory};" in page
    row = next(
        line for line in section("docs/growth.md", "What was measured").splitlines() if "100,000 objects" in line
    )
    assert f"| {rounded(full['processor_seconds'])} s of processor, {seconds} s; {memory} " in row
