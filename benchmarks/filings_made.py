"""Annual reports of companies that do not exist, and questions about them: many companies and years, the same tables.

Nothing but the opening of a report names its company, and its tables differ from those of the others in figures alone,
as in real filings.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COMPANIES = (
    "Alder Freight", "Brightwater Dairies", "Corvane Optics", "Dunmore Paper", "Estrel Pharma", "Fennick Tools",
    "Garrow Airlines", "Helvig Semiconductors", "Ironmere Steel", "Juniper Toys", "Kestwick Apparel", "Lorne Energy",
)  # fmt: skip
YEARS = range(2016, 2021)
FACTS = {
    "Total net revenue": "How much revenue did {company} report in {year}?",
    "Cost of goods sold": "What did {company} pay for cost of goods sold in {year}?",
    "Research and development expense": "What was {company}'s research and development expense in {year}?",
    "Net income": "What is the {year} net income of {company}?",
    "Cash and cash equivalents": "How much cash and cash equivalents did {company} hold at the end of {year}?",
    "Inventories": "What were {company}'s inventories on the balance sheet of {year}?",
    "Total current assets": "What are total current assets of {company} at the close of {year}?",
    "Total current liabilities": "Give the total current liabilities of {company} for {year}.",
    "Net cash provided by operating activities": "What did operating activities of {company} yield in {year}?",
    "Capital expenditures": "How large were the capital expenditures of {company} in {year}?",
    "Dividends paid": "Which amount of dividends paid does {company} state for {year}?",
}
"""row of a table -> question about it"""
_STATEMENTS = {
    "Consolidated Statements of Income": tuple(FACTS)[:4],
    "Consolidated Balance Sheets": tuple(FACTS)[4:8],
    "Consolidated Statements of Cash Flows": tuple(FACTS)[8:],
}
_OTHER_ROWS = tuple(
    f"{first} {second}"
    for first in ("Accrued", "Deferred", "Prepaid", "Restricted", "Unbilled", "Other")
    for second in ("deposits", "freight", "licences", "pensions", "rebates", "royalties", "wages")
)
"""rows before those that are asked for, in reports with long tables"""
_RISKS = (
    "Demand for our products depends on economic conditions in our markets, and a downturn may reduce it.",
    "Our suppliers may raise prices or fail to deliver, and we may not be able to pass higher costs on to customers.",
    "We depend on key personnel, and competition for qualified staff in our industry is intense.",
    "Changes in tax law, tariffs or exchange rates could reduce our net income and our cash flow.",
    "A failure of our information systems could interrupt operations and harm our reputation.",
    "We are party to legal proceedings, whose outcome cannot be predicted with certainty.",
    "Our indebtedness limits how we use cash, including for dividends and capital expenditures.",
    "Inventories may become obsolete if demand for our products changes faster than we expect.",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, with what answers it."""

    text: str
    filename: str
    """of the document that answers"""
    pages: tuple[int, ...] = ()
    """1-based pages that hold the answer; empty if `words` tell"""
    words: str = ""
    """text that a chunk with the answer holds"""


def write_reports(folder: Path, seed: int = 7, *, long_tables: bool = False) -> list[Question]:
    """Write a report per company and year as Markdown; return a question for each, by turns about every fact.

    Every other company names its files by number, as an archive of filings does.

    Args:
        folder: existing folder.
        seed: of the figures.
        long_tables: True for tables of 45 rows, longer than a chunk; those of every other company are lines of plain
            text, as in a PDF.
    """
    chance, questions = random.Random(seed), []
    for place, company in enumerate(COMPANIES):
        figures = {fact: {year: _amount(chance) for year in range(YEARS[0] - 2, YEARS[-1] + 1)} for fact in FACTS}
        for year in YEARS:
            name = (
                f"{company.split()[0].upper()}_{year}_10K"
                if place % 2
                else f"000{71_000 + place}-{year % 100 + 1}-{chance.randrange(10**6):06}"
            )
            plain = long_tables and place % 4 in (1, 2)
            name = f"{name}.{'txt' if plain else 'md'}"
            lines = _report(chance, company, year, figures, _OTHER_ROWS if long_tables else ())
            (folder / name).write_text("\n".join(map(_as_plain_line, lines) if plain else lines), "utf-8")
            fact = tuple(FACTS)[len(questions) % len(FACTS)]
            asked = FACTS[fact].format(company=company, year=f"{('FY', 'fiscal year ')[len(questions) % 3 == 2]}{year}")
            row = f"| {fact} | {figures[fact][year]} |"
            questions.append(Question(asked, name, words=_as_plain_line(row) if plain else row))
    return questions


def _amount(chance: random.Random) -> str:
    return f"{chance.randrange(1_000, 99_999):,}"


def _as_plain_line(lines: str) -> str:
    """Return a line as a PDF would have it: neither marks of headings nor those of tables."""
    lines = re.sub(r"\n\|[-|]+$", "", lines).removeprefix("# ")
    return " ".join(lines.replace("|", " ").split()) if lines.startswith("|") else lines


def _report(
    chance: random.Random, company: str, year: int, figures: dict[str, dict[int, str]], others: Sequence[str]
) -> Iterator[str]:
    yield f"{company}, Inc.\n\nAnnual report pursuant to section 13 or 15(d)\n"
    yield f"For the fiscal year ended December 31, {year}\n"
    yield "# Business\n"
    yield f"{company} and its subsidiaries (the Company, we, our) sell their products in many countries.\n"
    yield "# Risk Factors\n"
    yield from (f"{' '.join(_shuffled(chance, _RISKS))}\n" for _ in range(4))
    for title, facts in _STATEMENTS.items():
        yield f"# {title}\n\n(in thousands)\n"
        yield f"| Years ended December 31, | {year} | {year - 1} | {year - 2} |\n|---|---|---|---|"
        yield from (f"| {each} | {' | '.join(_amount(chance) for _ in range(3))} |" for each in others)
        yield from (f"| {fact} | {' | '.join(figures[fact][year - back] for back in range(3))} |" for fact in facts)
        yield "\nSee the accompanying notes to the consolidated financial statements.\n"
        yield from (f"{' '.join(_shuffled(chance, _RISKS))}\n" for _ in range(2))
    yield "# Notes to Consolidated Financial Statements\n"
    for fact in FACTS:
        words = fact[0].lower() + fact[1:]
        risks = " ".join(_shuffled(chance, _RISKS)[:3])
        yield f"The Company accounts for {words} as described in its policies. {risks}\n"


def _shuffled(chance: random.Random, lines: Sequence[str]) -> list[str]:
    return chance.sample(lines, len(lines))
