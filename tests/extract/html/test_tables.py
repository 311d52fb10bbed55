"""Tables, mostly with blocks in their cells: data if they say so or are as regular as data, layout otherwise."""

from __future__ import annotations

import pytest

from parquetry.extract.builder import TextBuilder
from parquetry.extract.html.reader import add_html


def fragment(html: str) -> str:
    builder = TextBuilder()
    add_html(builder, html, main_only=False)
    return builder.build(title=None, metadata={}, media_type="", extractor="").text


HEAD = "<tr><th>Pump</th><th>Note</th></tr>"
INNER = "<table><tr><td>1.5 bar</td><td>at most 2</td></tr></table>"
LONG = "The valve has to be opened slowly. " * 15
DATA = {
    "heading below a head": (f"{HEAD}<tr><td><h3>P1</h3></td><td>{LONG}</td></tr>", f"| P1 | {LONG.strip()} |"),
    "inner table below a head": (f"{HEAD}<tr><td>P1</td><td>{INNER}</td></tr>", "| P1 | 1.5 bar at most 2 |"),
    "code after names of rows": (
        f"<tr><th>P1</th><td><pre>start</pre>{LONG}</td></tr><tr><th>P2</th><td><pre>stop</pre>{LONG}</td></tr>",
        f"| P2 | stop {LONG.strip()} |",
    ),
    "caption": (
        f"<caption>Pumps</caption><tr><td><h3>P1</h3>{LONG}</td><td>2</td></tr><tr><td>P2</td><td>3</td></tr>",
        "| P2 | 3 |",
    ),
    "uneven rows, no blocks": ("<tr><td>P1</td><td>2</td></tr><tr><td>P2</td></tr>" * 2, "| P1 | 2 |"),
    "short cells": ("<tr><td><h3>P1</h3></td><td>2</td></tr><tr><td><h3>P2</h3></td><td>3</td></tr>", "| P2 | 3 |"),
}
LAYOUT = {
    "cards": "<tr><td><h3>P1</h3>small</td><td><h3>P2</h3>large</td></tr>" * 2,
    "long cells": f"<tr><td><h3>P1</h3></td><td>{LONG}</td></tr>" * 2,
    "code of many lines": "<tr><td><pre>1\n2\n3\n4\n5\n6</pre></td><td>small</td></tr>" * 2,
    "uneven rows": "<tr><td><h3>Menu</h3></td><td>a</td></tr><tr><td>b</td></tr><tr><td>c</td></tr>",
    "one row": "<tr><th><h3>Left</h3></th><td><h3>Right</h3></td></tr>",
}


@pytest.mark.parametrize(("rows", "line"), DATA.values(), ids=DATA)
def test_cells_of_data_stay_in_their_rows_with_blocks_inside(rows: str, line: str) -> None:
    assert line in fragment(f"<table>{rows}</table>").split("\n")


@pytest.mark.parametrize("rows", LAYOUT.values(), ids=LAYOUT)
def test_cells_that_hold_blocks_without_signs_of_data_read_one_after_the_other(rows: str) -> None:
    assert "|" not in fragment(f"<table>{rows}</table>")


SIGNS = {
    "currency": ("<td>Sales</td><td>$</td><td>1,204</td>", "| Sales | $1,204 |"),
    "percent": ("<td>Share</td><td>12.5</td><td>%</td>", "| Share | 12.5% |"),
    "negative": ("<td>Loss</td><td>(</td><td>98</td><td>)</td>", "| Loss | (98) |"),
    "none": ("<td>Loss</td><td>$</td><td>—</td>", "| Loss | $— |"),
    "unit of a label": ("<td>Share</td><td>%</td><td>12.5</td>", "| Share | % | 12.5 |"),
    "unit after a unit": ("<td>Strength</td><td>N/mm 2</td><td>%</td>", "| Strength | N/mm 2 | % |"),
    "currency of a label": ("<td>Price</td><td>€</td><td>each</td>", "| Price | € | each |"),
}


@pytest.mark.parametrize(("row", "line"), SIGNS.values(), ids=SIGNS)
def test_signs_in_cells_of_their_own_belong_to_numbers_alone(row: str, line: str) -> None:
    assert line in fragment(f"<table><tr>{row}</tr><tr>{row}</tr></table>").split("\n")


NAMED = {
    "years": "<td>Part</td><td>Unit</td><td>2023</td><td>2024</td>",
    "years above labels without a name": "<td></td><td>Unit</td><td>2023</td><td>2024</td>",
    "months": "<td>Part</td><td>Unit</td><td>2023-11</td><td>2023-12</td>",
}


@pytest.mark.parametrize("names", NAMED.values(), ids=NAMED)
def test_periods_over_numbers_name_columns_without_being_marked(names: str) -> None:
    rows = (
        "<tr><td>Hook</td><td>kg</td><td>7</td><td>1,377</td></tr><tr><td>Rope</td><td>m</td><td>98</td><td>5</td></tr>"
    )
    assert fragment(f"<table><tr>{names}</tr>{rows}</table>").split("\n")[1].startswith("| --- |")
    assert not fragment(f"<table><tr>{names}</tr>{rows}</table>").startswith("|  |  |")


def test_years_over_years_name_nothing() -> None:
    rows = "".join(f"<tr><td>Ulm</td><td>{year}</td></tr>" for year in (2021, 2022, 2023))
    assert fragment(f"<table>{rows}</table>").startswith("|  |  |\n")
