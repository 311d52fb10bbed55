"""LaTeX: what a reader of the printed page sees, with its formulas as they are typed."""

from __future__ import annotations

import pytest

from parquetry.errors import SkippedDocument
from parquetry.extract.registry import extract
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings


def read(text: str, name: str = "a.tex") -> Extraction:
    return extract(RawDocument(text.encode(), name), ExtractionSettings(ocr=False))


def test_title_and_headings_of_a_document_and_nothing_of_its_preamble():
    extraction = read(
        "\\documentclass[a4paper]{article}\n\\usepackage{amsmath}\n\\title{On the \\emph{Quays}}\n\\author{Ada}\n"
        "\\newcommand{\\x}[1]{planted}\\lhead{planted}\n"
        "\\begin{document}\\maketitle\n\\section[Short]{Cranes \\& \\textbf{ships}}"
        "\\label{s}\nThey lift.\n\\subsection*{Blue}\nText.\n\\end{document}\nafter the end"
    )
    assert extraction.text == "# Cranes & ships\n\nThey lift.\n\n## Blue\n\nText."
    assert [(heading.level, heading.title) for heading in extraction.headings] == [(1, "Cranes & ships"), (2, "Blue")]
    assert (extraction.title, extraction.metadata["author"]) == ("On the Quays", "Ada")
    assert extraction.media_type == "text/x-tex"


def test_the_first_heading_is_the_title_of_a_part_and_chapters_are_above_sections():
    extraction = read("\\chapter{One}\nText.\n\\section{Two}\nMore.")
    assert extraction.title == "One"
    assert [heading.level for heading in extraction.headings] == [1, 2]
    assert extraction.text == "# One\n\nText.\n\n## Two\n\nMore."


def test_comments_go_and_percent_signs_stay():
    assert (
        read("50\\% of % planted\n th%\n   em % planted\ncame.% planted\n\n% planted\n\nNext.").text
        == "50% of them came.\n\nNext."
    )
    assert read("a\n\\begin{comment}\nplanted\n\\end{comment}\nb").text == "a b"


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("G\\\"oteborg", "Göteborg"), ("G\\\"{o}teborg", "Göteborg"), ("na\\\"{\\i}ve", "naïve"),
        ("Fran\\c{c}ois", "François"), ("\\v Sroub", "Šroub"), ("Stra\\ss e", "Straße"), ("a---b, 1--2", "a—b, 1–2"),
        ("``so''", "“so”"), ("a~b\\,c\\\\d", "a b c d"), ("\\{x\\_y\\}", "{x_y}"),
        ("see \\ref{f} \\cite{k}", "see [f] [k]"),
        ("\\href{https://x.org}{site}", "site (https://x.org)"), ("\\unknown[o]{kept} {\\bf bold}", "kept bold"),
        ("late\\footnote{An \\emph{hour}.}", "late (An hour.)"), ("\\verb|a_b%|", "`a_b%`"),
        ("\\textcolor{red}{kept}", "kept"), ("\\vspace{1cm}x", "x"),
    ],
)  # fmt: skip
def test_text_as_it_is_printed(typed: str, printed: str):
    assert read(f"x {typed} y").text == f"x {printed} y"


def test_formulas_stay_as_they_are_typed():
    text = read(
        "So $a^2\n+ b_1$ and \\(x\\) cost \\$5.\n\\begin{align*}\\label{e}\n a &= b \\\\\n c &= d\n\\end{align*}\n"
        "\\[ x % y\n\\] $$z$$"
    ).text
    assert text == "So $a^2 + b_1$ and $x$ cost $5.\n\n$$\na &= b \\\\ c &= d\n$$\n\n$$\nx % y\n$$\n\n$$\nz\n$$"


def test_lists_have_their_marks():
    text = read(
        "\\begin{itemize}\n\\item One\n\\item Two\n\\begin{enumerate}\\item inner\\item more\\end{enumerate}\n"
        "\\item[Key] three\n\nstill three\n\\end{itemize} After."
    ).text
    assert text == "- One\n- Two\n  1. inner\n  2. more\n- Key three\n  still three\n\nAfter."


def test_tables_are_tables_with_their_caption():
    text = read(
        "\\begin{table}[h]\\caption{Cranes}\n\\begin{tabular}{|l|r|}\\hline\nName & Count \\\\ \\hline\n"
        "Blue & 3 \\\\[2pt]\n"
        "\\multicolumn{2}{c}{both \\& more} \\\\\nA \\begin{tabular}{l}x\\\\y\\end{tabular} & 5\n"
        "\\end{tabular}\\end{table}"
    ).text
    assert text == ("Cranes\n\n| Name | Count |\n| --- | --- |\n| Blue | 3 |\n| both & more |  |\n| A x, y | 5 |")


def test_a_table_without_a_rule_under_its_first_row_has_no_names():
    text = read("\\begin{tabularx}{\\textwidth}{ll}a & b\\\\c & d\\end{tabularx}").text
    assert text == "|  |  |\n| --- | --- |\n| a | b |\n| c | d |"


def test_years_over_numbers_are_names_without_a_rule():
    text = read("\\begin{tabular}{lrr}Crane & 2023 & 2024\\\\Blue & 3 & 4\\end{tabular}").text
    assert text == "| Crane | 2023 | 2024 |\n| --- | --- | --- |\n| Blue | 3 | 4 |"


def test_several_authors_are_divided_by_commas():
    text = "\\title{Cranes}\\author{A. Carpenter \\and B. Joiner}\n\\begin{document}\\maketitle Words.\\end{document}"
    assert read(f"\\documentclass{{article}}{text}").metadata["author"] == "A. Carpenter, B. Joiner"


def test_tables_deep_within_tables_keep_their_text():
    begin, end = "\\begin{tabular}{l}", "\\end{tabular}"
    text = read(begin * 12 + "Crane & hook" + end * 4 + " and \\\\ rope & pin" + end * 8 + " After.").text
    assert text == "|  |\n| --- |\n| Crane hook and, rope pin |\n\nAfter."


def test_code_is_kept_line_by_line():
    text = read("\\begin{lstlisting}[language=C]\nx = 1;  % kept\n\n\n\ny\n\\end{lstlisting}").text
    assert text == "```\nx = 1;  % kept\n\n\n\ny\n```"


def test_files_that_it_includes_are_named():
    extraction = read("Text \\input{one} \\include{two}")
    assert extraction.text == "Text"
    assert extraction.warnings == ("2 included files are not read here: one, two",)


@pytest.mark.parametrize(
    "text",
    ["a { b", "a } b", "a \\begin{verbatim} b", "a $b", "a \\[ b", "a \\begin{tabular}{l} b", "a \\begin{comment} b"],
)
def test_what_is_left_open_loses_no_words(text: str):
    found = read(text).text
    assert "a" in found
    assert "b" in found


def test_a_document_of_commands_alone_is_skipped():
    with pytest.raises(SkippedDocument, match="no-text: the file holds only commands and comments"):
        read("\\documentclass{article}\n\\begin{document}\n% x\n\\end{document}")
