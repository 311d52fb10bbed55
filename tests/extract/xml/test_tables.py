"""Tables of XML are tables, with spans, heads and titles."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

import pytest

from parquetry.extract.builder import TextBuilder
from parquetry.extract.html.reader import add_html
from parquetry.extract.xml.tables import is_table, table_html


def read(table: str) -> str:
    element = fromstring(table)
    assert is_table(element)
    builder = TextBuilder()
    add_html(builder, table_html(element), main_only=False)
    return builder.build(title=None, metadata={}, media_type="", extractor="").text


COLUMNS = (
    "<colspec colname='a'/><colspec colname='b'/><colspec colname='c'/><spanspec spanname='s' namest='b' nameend='c'/>"
)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            f"<table><title>Speeds</title><tgroup cols='3'>{COLUMNS}<thead><row><entry morerows='1'>Model</entry>"
            "<entry namest='b' nameend='c'>Speed</entry></row><row><entry>min</entry><entry>max</entry></row></thead>"
            "<tfoot><row><entry>all</entry><entry colname='c'>9</entry></row></tfoot><tbody><row>"
            "<entry morerows='1'>P1</entry><entry>1</entry><entry>2</entry></row><row><entry>3</entry>"
            "<entry><para>4</para><para>est.</para></entry></row></tbody></tgroup></table>",
            "Speeds\n\n| Model | Speed / min | Speed / max |\n| --- | --- | --- |\n| P1 | 1 | 2 |\n| P1 | 3 |"
            " 4 est. |\n| all |  | 9 |",
        ),
        (
            f"<informaltable><tgroup cols='3'>{COLUMNS}<thead><row><entry>M</entry><entry spanname='s'>S</entry></row>"
            "</thead><tbody><row><entry>x</entry><entry>1</entry><entry>2</entry></row></tbody></tgroup></informaltable>",
            "| M | S | S |\n| --- | --- | --- |\n| x | 1 | 2 |",
        ),
        (
            f"<table><tgroup cols='3'>{COLUMNS}<tbody><row><entry morerows='1'>A</entry><entry>1</entry>"
            "<entry>2</entry></row><row><entry colname='c'>9</entry></row></tbody></tgroup></table>",
            "|  |  |  |\n| --- | --- | --- |\n| A | 1 | 2 |\n| A |  | 9 |",
        ),
        (
            "<table xmlns='http://www.w3.org/1999/xhtml'><caption>Costs</caption><tr><th>Part</th><th>Cost</th></tr>"
            "<tr><td>Seal<br/>ring</td><td>10<sup>3</sup> | 4</td></tr></table>",
            "Costs\n\n| Part | Cost |\n| --- | --- |\n| Seal ring | 103 \\| 4 |",
        ),
        (
            "<simpletable><sthead><stentry>Part</stentry><stentry>Cost</stentry></sthead>"
            "<strow><stentry>Seal</stentry><stentry>4</stentry></strow></simpletable>",
            "| Part | Cost |\n| --- | --- |\n| Seal | 4 |",
        ),
        (
            "<Table><Row><Cell><Data>Part</Data></Cell><Cell><Data>Cost</Data></Cell></Row>"
            "<Row><Cell><Data>Seal</Data></Cell><Cell><Data>4</Data></Cell></Row></Table>",
            "| Part | Cost |\n| --- | --- |\n| Seal | 4 |",
        ),
        (
            "<table><tgroup><tbody><row><entry>1</entry><entry>2</entry></row></tbody></tgroup>"
            "<tgroup><tbody><row><entry>3</entry><entry>4</entry></row></tbody></tgroup></table>",
            "|  |  |\n| --- | --- |\n| 1 | 2 |\n\n|  |  |\n| --- | --- |\n| 3 | 4 |",
        ),
    ],
    ids=["CALS", "span by name", "column by name", "HTML", "DITA", "spreadsheet", "two groups"],
)
def test_table_has_its_rows_columns_and_title(table: str, expected: str):
    assert read(table) == expected


@pytest.mark.parametrize(
    "element",
    ["<table><row><id>1</id><name>x</name></row></table>", "<table/>", "<rows><row><cell>1</cell></row></rows>"],
)
def test_records_in_something_called_a_table_are_none(element: str):
    assert not is_table(fromstring(element))
