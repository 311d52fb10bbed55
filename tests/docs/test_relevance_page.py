"""The figures of the page on relevance are the measured ones."""

import json

import pytest

from tests.documentation import ROOT, text_of

PAGE = text_of("docs/relevance.md")
MEASURED = json.loads((ROOT / "benchmarks" / "results" / "relevance.json").read_text("utf-8"))["measured"]


def thresholds(mode, measured):
    """Return the rows of a table of thresholds for a mode."""
    for each in measured["thresholds"]:
        shares = (each["kept"], each["precision"], each["silent"]["foreign"], each["silent"]["removed"])
        yield f"| {mode} | {each['threshold']} | " + " | ".join(f"{share:.2f}" for share in shares) + " |"


@pytest.mark.parametrize(
    ("measure", "heading"), [("fitted", "Fitted to all three"), ("held_out", "Each collection left out")]
)
def test_thresholds_are_those_measured(measure, heading):
    table = PAGE.partition(heading)[2].split("|---|---|---|---|---|---|\n")[1].split("\n\n")[0]
    assert table.splitlines() == [
        row for mode, measured in MEASURED[measure].items() for row in thresholds(mode, measured)
    ]


def test_observed_shares_are_those_measured():
    modes = MEASURED["held_out"]
    shown = {
        (mode, each["low"]): f"{each['observed']:.2f} ({each['count']})"
        for mode, measured in modes.items()
        for each in measured["bins"]
    }
    rows = [
        f"| {low} to {round(low + 0.1, 1)} | " + " | ".join(shown.get((mode, low), "") for mode in modes) + " |"
        for low in sorted({low for _, low in shown})
    ]
    table = PAGE.partition("| relevance | hybrid | vector | text |\n|---|---|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == rows


def test_errors_are_those_measured():
    hybrid, vector, text = MEASURED["held_out"].values()
    foreign = [f"{each['unanswerable_relevance']['foreign']:.2f}" for each in (hybrid, vector, text)]
    prose = " ".join(PAGE.split())
    assert (
        f"error is {hybrid['error']:.2f} (hybrid), {vector['error']:.2f} (vector) and {text['error']:.2f} (text)"
        in prose
    )
    assert f"is {foreign[0]}, {foreign[1]} and {foreign[2]}." in prose
