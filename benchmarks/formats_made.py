"""Documents with headings, text, lists and tables that do not exist elsewhere, and their forms that are plain text."""

from __future__ import annotations

import html
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_NOUNS = (
    "valve pump river council budget harvest engine window market teacher signal bridge forest paper winter copper "
    "doctor island border cable garden letter museum office parcel season ticket vessel village wagon café façade"
)
_VERBS = "builds carries decides enters follows gathers holds joins keeps leaves measures needs opens raises"
_OTHERS = "annual broken careful direct early final gentle heavy inner local narrow public quiet rapid simple"
_UNITS = ("kg", "m", "l", "h", "EUR", "%")


@dataclass(frozen=True, slots=True)
class Table:
    """A table with one header row."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """cells of each row; the first is its label, which no other row of the document has"""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and what stands below it."""

    heading: str
    paragraphs: tuple[str, ...]
    items: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class Document:
    """A document that can be written in any format."""

    title: str
    sections: tuple[Section, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(section.table for section in self.sections)


def made_document(seed: str) -> Document:
    """Return a document; the same for the same seed."""
    rng = random.Random(seed)
    nouns, verbs, others = _NOUNS.split(), _VERBS.split(), _OTHERS.split()
    labels = [f"{other} {noun}".capitalize() for other in others for noun in nouns]
    rng.shuffle(labels)

    def sentence() -> str:
        parts = [
            f"the {rng.choice(others)} {rng.choice(nouns)} {rng.choice(verbs)} a {rng.choice(nouns)}"
            for _ in range(rng.randint(1, 3))
        ]
        return ", and ".join(parts).capitalize() + "."

    def table(number: int) -> Table:
        years = range(2020 + number, 2020 + number + rng.randint(2, 3))
        rows = tuple(
            (labels.pop(), rng.choice(_UNITS), *(f"{rng.randint(1, 9999) / 10:,.1f}" for _ in years))
            for _ in range(rng.randint(4, 8))
        )
        return Table(f"Measured {rng.choice(nouns)} {number}", ("Part", "Unit", *map(str, years)), rows)

    sections = tuple(
        Section(
            f"{rng.choice(others).capitalize()} {rng.choice(nouns)} {number}",
            tuple(" ".join(sentence() for _ in range(rng.randint(2, 5))) for _ in range(rng.randint(1, 3))),
            tuple(sentence() for _ in range(rng.randint(2, 4))),
            table(number),
        )
        for number in range(1, rng.randint(3, 5))
    )
    return Document(f"Report of the {rng.choice(others)} {rng.choice(nouns)}", sections)


def words_of(document: Document) -> str:
    """Return everything that a reader of the document sees, in order."""
    lines = [document.title]
    for section in document.sections:
        lines += [section.heading, *section.paragraphs, *section.items, section.table.caption]
        lines += [" ".join(row) for row in (section.table.header, *section.table.rows)]
    return "\n".join(lines)


def rows_of(table: Table) -> tuple[tuple[str, ...], ...]:
    return (table.header, *table.rows)


def as_html(document: Document) -> str:
    """Return the body of a web page without what surrounds a text on the web."""
    parts = [f"<h1>{html.escape(document.title)}</h1>"]
    for section in document.sections:
        parts.append(f"<h2>{html.escape(section.heading)}</h2>")
        parts += [f"<p>{html.escape(text)}</p>" for text in section.paragraphs]
        parts.append(f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for item in section.items)}</ul>")
        head = "".join(f"<th>{cell}</th>" for cell in section.table.header)
        rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in section.table.rows)
        parts.append(f"<table><caption>{section.table.caption}</caption><tr>{head}</tr>{rows}</table>")
    return "\n".join(parts)


def html_page(document: Document) -> str:
    menu = "".join(f'<li><a href="/m{n}">{noun}</a></li>' for n, noun in enumerate(("Home", "Shop", "Imprint", "Jobs")))
    head = f'<head><meta charset="utf-8"><title>{html.escape(document.title)}</title></head>'
    footer = "<footer><p>Contact us by mail or telephone.</p></footer>"
    body = f"<body><nav><ul>{menu}</ul></nav><main>{as_html(document)}</main>{footer}</body>"
    return f'<!DOCTYPE html><html lang="en">{head}{body}</html>'


def _pipes(table: Table, crossing: str = "|") -> str:
    """Return rows between signs; `crossing` is the sign between the dashes below the first row."""
    head, *rows = (f"| {' | '.join(row)} |" for row in rows_of(table))
    return "\n".join([head, f"|{crossing.join('---' for _ in table.header)}|", *rows])


def _blocks(
    document: Document, title: str, heading: Callable[[str], str], item: str, table: Callable[[Table], str]
) -> str:
    blocks = [title]
    for section in document.sections:
        items = "\n".join(f"{item}{text}" for text in section.items)
        blocks += [heading(section.heading), *section.paragraphs, items, table(section.table)]
    return "\n\n".join(blocks) + "\n"


def markdown(document: Document) -> str:
    return _blocks(
        document, f"# {document.title}", "## {}".format, "- ", lambda table: f"{table.caption}\n\n{_pipes(table)}"
    )


def org(document: Document) -> str:
    comment = f"#+TITLE: {document.title}\n#+OPTIONS: toc:nil\n# not to be read"
    return _blocks(
        document, comment, "* {}".format, "- ", lambda table: f"#+CAPTION: {table.caption}\n{_pipes(table, '+')}"
    )


def asciidoc(document: Document) -> str:
    def table(table: Table) -> str:
        lines = [f".{table.caption}", "|===", "".join(f"|{cell} " for cell in table.header), ""]
        return "\n".join([*lines, *("".join(f"|{cell} " for cell in row) for row in table.rows), "|==="])

    return _blocks(document, f"= {document.title}\n:toc:\n\n// not to be read", "== {}".format, "* ", table)


def rst(document: Document) -> str:
    def table(table: Table) -> str:
        widths = [max(map(len, column)) for column in zip(*rows_of(table), strict=True)]
        rule = " ".join("=" * width for width in widths)
        lines = [" ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows_of(table)]
        return "\n".join([table.caption, "", rule, lines[0], rule, *lines[1:], rule])

    rule = "=" * len(document.title)
    title = f"{rule}\n{document.title}\n{rule}\n\n.. not to be read"
    return _blocks(document, title, lambda text: f"{text}\n{'-' * len(text)}", "- ", table)


def latex(document: Document) -> str:
    def plain(text: str) -> str:
        return text.replace("%", "\\%").replace("é", "\\'e").replace("ç", "\\c{c}")

    def table(table: Table) -> str:
        head, *rows = (f"{plain(' & '.join(row))} \\\\" for row in rows_of(table))
        columns, lines = "l" * len(table.header), "\n".join(rows)
        inner = f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{head}\n\\hline\n{lines}\n\\end{{tabular}}"
        return f"\\begin{{table}}[ht]\n\\caption{{{plain(table.caption)}}}\n{inner}\n\\end{{table}}"

    parts = [f"\\documentclass{{article}}\n\\title{{{plain(document.title)}}}\n\\begin{{document}}\n\\maketitle"]
    for section in document.sections:
        items = "\n".join(f"\\item {plain(item)}" for item in section.items)
        parts += [f"\\section{{{plain(section.heading)}}} % not to be read", *map(plain, section.paragraphs)]
        parts += [f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}", table(section.table)]
    return "\n\n".join([*parts, "\\end{document}\n"])


def docbook(document: Document) -> str:
    def table(table: Table) -> str:
        head, *rows = (f"<row>{''.join(f'<entry>{cell}</entry>' for cell in row)}</row>" for row in rows_of(table))
        group = f'<tgroup cols="{len(table.header)}"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></tgroup>'
        return f"<table><title>{table.caption}</title>{group}</table>"

    parts = []
    for section in document.sections:
        text = "".join(f"<para>{paragraph}</para>" for paragraph in section.paragraphs)
        items = "".join(f"<listitem><para>{item}</para></listitem>" for item in section.items)
        inner = f"{text}<itemizedlist>{items}</itemizedlist>{table(section.table)}"
        parts.append(f"<section><title>{section.heading}</title>{inner}</section>")
    root = 'article xmlns="http://docbook.org/ns/docbook" version="5.0"'
    return f'<?xml version="1.0"?><{root}><title>{document.title}</title>{"".join(parts)}</article>'


def jats(document: Document) -> str:
    parts = []
    for number, section in enumerate(document.sections):
        text = "".join(f"<p>{paragraph}</p>" for paragraph in section.paragraphs)
        items = "".join(f"<list-item><p>{item}</p></list-item>" for item in section.items)
        head = "".join(f"<th>{cell}</th>" for cell in section.table.header)
        rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in section.table.rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        caption = f"<caption><p>{section.table.caption}</p></caption>"
        wrapped = f'<table-wrap id="t{number}">{caption}{table}</table-wrap>'
        heading = f"<title>{section.heading}</title>"
        parts.append(f'<sec>{heading}{text}<list list-type="bullet">{items}</list>{wrapped}</sec>')
    title = f"<title-group><article-title>{document.title}</article-title></title-group>"
    front = f"<front><article-meta>{title}</article-meta>"
    return f'<?xml version="1.0"?><article>{front}</front><body>{"".join(parts)}</body></article>'


def atom(document: Document) -> str:
    """Return a feed with an entry for each section."""
    entries = []
    for number, section in enumerate(document.sections):
        inner = as_html(Document("", (section,))).partition("</h2>")[2]
        content = f'<content type="html">{html.escape(inner)}</content>'
        entries.append(f"<entry><id>urn:e{number}</id><title>{section.heading}</title>{content}</entry>")
    head = f"<id>urn:f</id><title>{document.title}</title>"
    return f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom">{head}{"".join(entries)}</feed>'


def notebook(document: Document) -> str:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": part.splitlines(keepends=True)}
        for part in markdown(document).replace("\n## ", "\n\0## ").split("\0")
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def rtf(document: Document) -> str:
    def signs(text: str) -> str:
        return "".join(sign if sign.isascii() else f"\\u{ord(sign)}?" for sign in text)

    def table(table: Table) -> str:
        edges = "".join(f"\\cellx{2000 * (place + 1)}" for place in range(len(table.header)))
        rows = ("".join(f"\\intbl {signs(cell)}\\cell" for cell in row) for row in rows_of(table))
        return "\n".join(f"\\trowd{edges}{row}\\row" for row in rows)

    parts = ["{\\rtf1\\ansi\\deff0{\\fonttbl{\\f0 Serif;}}{\\stylesheet{\\s1 heading 1;}{\\s2 heading 2;}}"]
    parts.append(f"\\pard\\s1 {signs(document.title)}\\par")
    for section in document.sections:
        parts.append(f"\\pard\\s2 {signs(section.heading)}\\par")
        parts += [f"\\pard {signs(text)}\\par" for text in (*section.paragraphs, *section.items, section.table.caption)]
        parts += [table(section.table), "\\pard"]
    return "\n".join(parts) + "}"


def _cues(document: Document) -> Iterator[tuple[int, str]]:
    texts = [text for section in document.sections for text in (*section.paragraphs, *section.items)]
    yield from enumerate(sentence.strip(". ") + "." for text in texts for sentence in text.split(". "))


def spoken(document: Document) -> str:
    return "\n".join(text for _, text in _cues(document))


def srt(document: Document) -> str:
    def at(seconds: int) -> str:
        return f"00:{seconds // 60:02}:{seconds % 60:02}"

    return "\n".join(
        f"{number + 1}\n{at(4 * number)},000 --> {at(4 * number + 3)},500\n<i>{text}</i>\n"
        for number, text in _cues(document)
    )


def vtt(document: Document) -> str:
    lines = srt(document).replace(",000 -->", ".000 -->").replace(",500\n", ".500\n")
    return f"WEBVTT\n\nNOTE not to be read\n\n{lines}"


def csv(document: Document) -> str:
    return "\n".join(";".join(row) for row in rows_of(document.tables[0])) + "\n"


def json_records(document: Document) -> str:
    table = document.tables[0]
    return json.dumps([dict(zip(table.header, row, strict=True)) for row in table.rows], ensure_ascii=False)


def cells_of(tables: Sequence[Table]) -> list[tuple[str, str, str]]:
    """Return label of the row, name of the column, and value of every cell."""
    return [
        (row[0], name, value)
        for table in tables
        for row in table.rows
        for name, value in zip(table.header[1:], row[1:], strict=True)
    ]
