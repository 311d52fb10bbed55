"""Heads of tables: a chunk that begins inside a table carries caption, unit and column names, and nothing else does."""

from __future__ import annotations

import pytest

from parquetry.chunking.chunker import Chunker
from parquetry.chunking.tables import MAX_HEAD_CHARACTERS
from parquetry.extract.builder import TextBuilder
from parquetry.extract.registry import extract
from parquetry.model import Chunk, Extraction, Heading, RawDocument
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.sections import ExtractionSettings

STATEMENT = """Alder Freight, Inc.

Consolidated Balance Sheets

December 31,
(In millions, except par value) 2018 2017
ASSETS
Current assets:
Cash and cash equivalents $ 4,249 $ 3,808
Short-term investments 996 2,371
Receivables, net of allowances for
doubtful accounts 3,498 3,677
Inventories 5,261 5,055
Total current assets 14,004 14,911
Property, plant and equipment 4,454 3,989
Goodwill 154 139
TOTAL ASSETS $ 18,612 $ 19,039
LIABILITIES
Accounts payable 2,279 2,048
Accrued liabilities 3,269 3,011
Long-term debt 3,468 3,471"""
HEAD = "Consolidated Balance Sheets | December 31, | (In millions, except par value) 2018 2017"
PROSE = "Demand depends on the economy, and on the prices that our suppliers ask, which rose by a tenth this year. " * 4


def pages(*texts: str) -> Extraction:
    builder = TextBuilder()
    for number, text in enumerate(texts, start=1):
        builder.part("page", number, None, "text")
        builder.text(text)
    return builder.build(title=None, metadata={}, media_type="application/pdf", extractor="test/1")


def read(text: str, filename: str) -> Extraction:
    return extract(RawDocument(text.encode(), filename), ExtractionSettings())


def chunked(made: Extraction, size: int = 150) -> tuple[Chunk, ...]:
    return Chunker(ChunkingSettings(size=size, overlap=0), None).split(made.text, made.parts, made.headings)


def heads(made: Extraction, size: int = 150) -> dict[str, tuple[str, ...]]:
    """Return the headings of each chunk by its first line."""
    found = {made.text[each.start : each.end].split("\n")[0]: each.headings for each in chunked(made, size)}
    assert len(found) == len(chunked(made, size))
    return found


def rows(count: int, first: int = 0) -> str:
    return "\n".join(f"| item {number} | {number * 37} | {number * 41} |" for number in range(first, first + count))


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        ("Revenue by product\n\n(in thousands)", "Revenue by product | (in thousands) | Product | 2018 | 2017"),
        ("**Table 3: Revenue (EUR million)**", "Table 3: Revenue (EUR million) | Product | 2018 | 2017"),
        ("The following table shows revenue:", "The following table shows revenue: | Product | 2018 | 2017"),
        ("We sell in many countries, and prices vary.", "Product | 2018 | 2017"),
        (PROSE, "Product | 2018 | 2017"),
        ("- a list\n- of things", "Product | 2018 | 2017"),
        ("", "Product | 2018 | 2017"),
    ],
)
def test_a_chunk_of_a_markdown_table_carries_caption_unit_and_column_names(above: str, expected: str) -> None:
    made = read(f"# Report\n\n{above}\n\n| Product | 2018 | 2017 |\n|---|---|---|\n{rows(40)}\n\nThe end.", "a.md")
    inside = [each for each in chunked(made, 300) if made.text[each.start :].startswith("| item")]
    assert len(inside) > 2
    assert {each.headings for each in inside} == {("Report", expected)}


def test_a_caption_that_is_a_heading_stands_there_once() -> None:
    made = read(f"# Revenue\n\n(in thousands)\n\n| a | b | c |\n|---|---|---|\n{rows(40)}", "a.md")
    assert chunked(made, 300)[1].headings == ("Revenue", "(in thousands) | a | b | c")


def test_blocks_of_a_long_table_carry_the_caption_and_their_own_column_names() -> None:
    """Extraction repeats the header row in each block: a chunk that begins with it needs no other."""
    cells = "".join(f"<tr><td>item {number}</td><td>{number}</td></tr>" for number in range(240))
    made = read(
        f"<html><body><h1>Report</h1><p>{PROSE}</p><table><caption>Table 3: Revenue (in millions)</caption>"
        f"<tr><th>Product</th><th>2018</th></tr>{cells}</table></body></html>",
        "a.html",
    )
    firsts = [(made.text[each.start :].split("\n")[0], each.headings) for each in chunked(made, 600)]
    begins = [path[-1] for first, path in firsts if first == "| Product | 2018 |"]
    inside = [path[-1] for first, path in firsts if first.startswith("| item")]
    assert len(begins) > 1
    assert set(begins) == {"Table 3: Revenue (in millions)"}
    assert set(inside) == {"Table 3: Revenue (in millions) | Product | 2018"}


def test_a_table_without_column_names_or_caption_adds_nothing() -> None:
    assert {each.headings for each in chunked(read(rows(40), "a.md"), 300)} == {()}


def test_a_chunk_of_a_table_of_plain_lines_carries_its_head() -> None:
    made = pages(STATEMENT)
    found = list(heads(made).items())
    assert found[:2] == [("Alder Freight, Inc.", ()), ("December 31,", ("Consolidated Balance Sheets",))]
    assert len(found) > 3
    assert {path for _, path in found[2:]} == {(HEAD,)}


def test_the_text_of_a_chunk_stays_that_of_its_span() -> None:
    made = pages(STATEMENT)
    assert "\n".join(made.text[each.start : each.end] for each in chunked(made)).split() == STATEMENT.split()


def test_a_table_goes_on_over_a_page_if_its_rows_have_as_many_values() -> None:
    more = "Deferred income taxes 1,907 1,072\nShareholders' equity 9,812 12,407"
    assert chunked(pages(STATEMENT, more))[-1].headings == (HEAD,)
    assert chunked(pages(STATEMENT, "Freight costs 1 22,000 3,000\nOther costs 1 1,000 2,000"))[-1].headings == ()
    assert chunked(pages(STATEMENT, f"Notes\n\n{more}"))[-1].headings == ()


@pytest.mark.parametrize(
    "after",
    [PROSE, "The figures are audited by independent accountants.", "Our other figures are as follows:"],
    ids=["long", "sentence", "announcement"],
)
def test_running_text_ends_a_table(after: str) -> None:
    made = pages(f"{STATEMENT}\n\n{after}\n\nWages paid 12,100 11,200\nRents paid 14,400 15,500\n{PROSE}")
    last = [each for each in chunked(made) if "Rents paid" in made.text[each.start : each.end]]
    assert all(HEAD not in each.headings for each in last)


def test_new_column_names_begin_another_table() -> None:
    other = "Maturities of debt\nFiscal year 2019 2020 2021\nNotes due 1,100 1,200 1,300\nLoans due 2,100 2,200 2,300"
    made = pages(f"{STATEMENT}\n{other}\n" + "\n".join(f"Lease {n} due 3,{n}00 3,200 3,300" for n in range(1, 9)))
    assert chunked(made)[-1].headings == ("Maturities of debt | Fiscal year 2019 2020 2021",)


def test_a_unit_before_the_first_row_of_joined_lines_counts() -> None:
    joined = "(In Millions) May 29, 2022 May 30, 2021 Cash $ 569.4 $ 1,505.2 Receivables 1,692.1 1,638.5"
    made = pages("\n".join(["Balance Sheets", joined, *[f"Item {n} 1,{n}00.1 2,{n}00.2" for n in range(1, 9)]]))
    assert chunked(made)[-1].headings == ("Balance Sheets | (In Millions) May 29, 2022 May 30, 2021",)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(["Page", "PART I 1", *[f"ITEM {n}. Marketing and other things {n * 3}" for n in range(1, 30)]]),
        "\n".join(f"/s/ Ada Smith {n}\nAda Smith Director July 24, 2018" for n in range(20)),
        "\n".join(f"Lease of an office, dated as of May {n}, 2017. 10-K 001-37622 10.{n}" for n in range(1, 20)),
        "\n".join(["Sales for 2018 2017", *[PROSE] * 3]),
        "\n".join(f"2018-05-{n:02} 12:00:{n:02} served 1,{n}00 requests in 2.{n}" for n in range(1, 30)),
        "\n".join(f"Purchase of treasury shares in connection\nwith plans 1,{n}00 2,{n}00" for n in range(1, 20)),
        "\n".join(f"Treasury Shares\nPurchased 1,{n}00 2,{n}00" for n in range(1, 20)),
        # A number beside a year is no second value.
        "The halls are shown below:\n" + "\n".join(f"Hall {n} of the works 1,{n}00 {2000 + n}" for n in range(1, 10)),
    ],
    ids=["contents", "signatures", "exhibits", "prose", "log", "labels", "names", "years"],
)
def test_what_is_no_table_for_certain_adds_nothing(text: str) -> None:
    assert {each.headings for each in chunked(pages(text))} == {()}


def test_column_names_spread_over_many_lines_are_left_out() -> None:
    spread = "\n".join(["Gross", "Carrying", "Amount", "Accumulated", "Amortization"] * 2)
    items = "\n".join(f"Item {n} 1,{n}00 22,000" for n in range(1, 20))
    made = pages(f"Intangible assets\n{spread}\n(in thousands)\n{items}")
    assert chunked(made)[-1].headings == ("(in thousands)",)


@pytest.mark.parametrize(
    ("above", "head"),
    [
        (
            "Freight by lane//(In millions)//NORTH/SEA//BALTIC//MIDDLE/EAST &/AFRICA//TOTAL",
            "Freight by lane | (In millions)",
        ),
        (
            "Payments due are as follows:/(In millions) Total//Less/than 1/year//1-3/years//After 5/years",
            "Payments due are as follows: | (In millions) Total | Less | After 5",
        ),
        (
            "Position//(In millions) December 31, 2018//Assets Reported//Impact of New/Rules Restated",
            "Position | (In millions) December 31, 2018 | Assets Reported | Impact of New | Rules Restated",
        ),
        (
            "In Millions, Except Rates,/Margins and Ratios//Fiscal Year/2019 (a) 2018 2017//Net sales//$//16,865.2",
            "In Millions, Except Rates, | Margins and Ratios | Fiscal Year | 2019 (a) 2018 2017",
        ),
        (
            "Balance//(In millions)//May 26,/2019 May 27,//2018 ASSETS",
            "Balance | (In millions) | May 26, | 2019 May 27, | 2018 ASSETS",
        ),
        (
            "Balance//(In millions)//May 26,/2019 May 27,//2018 ASSETS Current assets:",
            "Balance | (In millions) | May 26, | 2019 May 27, | 2018",
        ),
        ("Year Ended/2018 2017/(in thousands)//Revenue:", "Year Ended | 2018 2017 | (in thousands)"),
        (
            "The table below shows the duties and the provisions that were made for them, and what became of each in"
            " the years that ended . 2018 2017",
            "2018 2017",
        ),
        (
            "Fiscal Year/In Millions, Except Shares 2022 2021 Profit $ 2,707.3 $ 2,339.8",
            "In Millions, Except Shares 2022 2021",
        ),
    ],
    ids=[
        "words",
        "fragments",
        "restated",
        "loose-values",
        "dates",
        "group-after-year",
        "unit-below",
        "sentence",
        "joined",
    ],
)
def test_heads_whose_parts_stand_on_lines_of_their_own_are_whole(above: str, head: str) -> None:
    """Pages of filings show column names word by word, units below the years, and values apart from their row."""
    rows = "\n".join(f"Lane {n} of the fleet 1,{n}00 {n},200" for n in range(1, 20))
    lines = above.replace("/", "\n")
    last = chunked(pages(f"{PROSE}\n\n{lines}\n{rows}"))[-1].headings[-1]
    assert last.endswith(head)
    assert "Demand" not in last


def test_a_caption_among_plain_lines_that_is_a_heading_stands_there_once() -> None:
    made = pages(STATEMENT)
    heading = Heading(made.text.index("Consolidated"), 1, "Consolidated Balance Sheets")
    (*_, last) = Chunker(ChunkingSettings(size=150, overlap=0), None).split(made.text, made.parts, [heading])
    assert last.headings == (heading.title, HEAD.removeprefix("Consolidated Balance Sheets | "))


def test_a_head_is_short() -> None:
    wide = "| " + " | ".join(f"column {number}" for number in range(200)) + " |"
    made = read(f"Caption\n\n{wide}\n{'|---' * 200}|\n{rows(40)}", "a.md")
    inside = chunked(made, 300)[-1].headings
    assert inside[0].startswith("Caption | column 0 | column 1 |")
    assert len(inside[0]) <= MAX_HEAD_CHARACTERS


def test_code_is_no_table() -> None:
    code = "\n".join(["Sizes in millions", "2018 2017", *[f"size {n} 1,{n}00 2,{n}00" for n in range(1, 40)]])
    assert {each.headings for each in chunked(read(f"# Code\n\n```text\n{code}\n```", "a.md"), 300)} == {("Code",)}
