"""Markdown and reStructuredText built to exhaust its reader."""

# ruff: noqa: E501 (one class on one line)

from __future__ import annotations

from tests.extract.hostile_shapes import Hostile, halves, nested, numbered, repeated

_TEXT = "The pump is opened slowly, step by step.\n\n"
MARKDOWN: dict[str, Hostile] = {
    f"markdown: {piece!r}"[:60]: repeated("a.md", piece, _TEXT)
    for piece in (
        "#", "# ", "# x\n", "## x\n\n", "|", "| ", "| a ", "|a|b|\n", "|\n", "*", "**", "*a ", "* a **b ", "_", "`", "``", "`\n", "~~~\n",
        "```\n", "```x\n", "[", "]", "[]", "[a](", "[a][", "![", "![[]()", "<", "<!--", "<!-- -->\n", "<a ", "</", "<?", "<!A", "<![CDATA[",
        "<div>\n", "<x>\n\n", "&", "\\", ">", "> ", ">\n", "> a\n", "- ", "-\n", "- a\n", "1. ", "1) a\n", " ", "\t", "\n", "\r", "\x0c",
        "a", "a ", "a\n", "---\n", "===\n", "a\n===\n", "a\n---\n", "[a]: b\n", "[a]: b 'c\n", "[a]:\n", "    a\n", "  \n", "\\\n", "<http:a", "a@b.c ",
        "\u0301\u0327", "\u0301", "<\n", "a|\n", "-|-\n", ":-", "| - ", "x - |", "\u00a0", "\u200b", "é",
    )
} | {
    "markdown: heading of marks": repeated("a.md", "*a _b ", "# "),
    "markdown: heading of brackets": repeated("a.md", "[", "# "),
    "markdown: heading of links": repeated("a.md", "[a](", "# "),
    "markdown: heading of images": repeated("a.md", "![", "# "),
    "markdown: heading of images, closed": nested("a.md", "![", "](x)", "x", "# "),
    "markdown: heading of backticks": repeated("a.md", "a`" + "`" * 7, "# "),
    "markdown: heading of rising backticks": lambda size: (
        ("# " + " ".join("`" * n for n in range(1, int((2 * size) ** 0.5)))).encode(), "a.md"
    ),
    "markdown: heading of <": repeated("a.md", "<", "# "),
    "markdown: heading of <a": repeated("a.md", "<a ", "# "),
    "markdown: heading of <!--": repeated("a.md", "<!--", "# "),
    "markdown: heading of \\<!--": repeated("a.md", "\\<!--", "# "),
    "markdown: heading of \\<a": repeated("a.md", "\\<a ", "# "),
    "markdown: heading of <?": repeated("a.md", "<?", "# "),
    "markdown: heading of <!A": repeated("a.md", "<!A", "# "),
    "markdown: heading of <![CDATA[": repeated("a.md", "<![CDATA[", "# "),
    "markdown: heading of attributes": repeated("a.md", " a='", "# <a"),
    "markdown: heading of &": repeated("a.md", "&", "# "),
    "markdown: heading of words": repeated("a.md", "a ", "# ", "\n\n" + _TEXT * 200),
    "markdown: heading of marks, then spaces": repeated("a.md", "# ", "# "),
    "markdown: heading of closing marks": repeated("a.md", " #", "# x", "y"),
    "markdown: heading of spaces": repeated("a.md", " ", "# x", "y"),
    "markdown: headings of marks": repeated("a.md", "# *a* [b](c) `d`\n", ""),
    "markdown: underlined paragraph": repeated("a.md", "a *b\n", "", "===\n"),
    "markdown: nested lists": lambda size: (
        "".join(" " * 2 * n + "- a\n" for n in range(int(size**0.5))).encode(), "a.md"
    ),
    "markdown: nested lists, on one line": repeated("a.md", "- ", "", "a\n"),
    "markdown: nested quotes": repeated("a.md", ">", "", "a\n" * 3),
    "markdown: nested quotes, lines": lambda size: (
        ((">" * int(size**0.5) + "a\n") * int(size**0.5)).encode(), "a.md"
    ),
    "markdown: nested quotes, lazy": halves("a.md", "> ", "a\n"),
    "markdown: nested quotes, mixed": repeated("a.md", "> - 1. ", "", "a\n"),
    "markdown: wide table": halves("a.md", "|a", "|a|\n", "", "|\n|-|\n"),
    "markdown: wide table, whole": lambda size: (
        (("|a" * (size // 8) + "|\n") + ("|-" * (size // 8) + "|\n") + "|a|\n" * (size // 8)).encode(), "a.md"
    ),
    "markdown: captions of tables": repeated("a.md", "in millions\n|\n\n"),
    "markdown: loose table": repeated("a.md", "a|b\n", "a|b\n-|-\n"),
    "markdown: almost delimiter": repeated("a.md", "-" , "|a|b|\n|", "x\n"),
    "markdown: almost delimiter, spaces": repeated("a.md", " ", "|a|b|\n| -", "x\n|\n"),
    "markdown: almost delimiters": repeated("a.md", "|-|a\n", "|a|b|\n"),
    "markdown: front matter of lines": numbered("a.md", "k@: v\n", "---\n", "---\ntext\n"),
    "markdown: front matter without end": numbered("a.md", "k@: v\n", "---\n"),
    "markdown: front matter of lists": repeated("a.md", "[", "---\na: ", "\n---\ntext\n"),
    "markdown: front matter of aliases": lambda size: (
        ("---\na0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, size // 40)) + "---\ntext\n").encode(), "a.md"
    ),
    "markdown: front matter of anchors in keys": repeated("a.md", "? ", "---\n", "a\n---\ntext\n"),
    "markdown: fences of many marks": lambda size: (
        "".join("`" * n + "\n" for n in range(3, int((2 * size) ** 0.5))).encode(), "a.md"
    ),
    "markdown: fences that do not end": lambda size: (
        "".join("`" * n + "\n" for n in range(int((2 * size) ** 0.5), 3, -1)).encode(), "a.md"
    ),
    "markdown: short fences": repeated("a.md", "```\nx\n```\n\n", ""),
    "markdown: trailing spaces": repeated("a.md", "x" + " " * 1000 + "y\n", ""),
    "markdown: definitions": numbered("a.md", "[a@]: b\n", ""),
    "markdown: definition, long": repeated("a.md", "a\n", "[", "]: b\n"),
    "markdown: definition title, long": repeated("a.md", "a\n", "[a]: b '", ""),
}  # fmt: skip

RST: dict[str, Hostile] = {
    f"rst: {piece!r}"[:60]: repeated("a.rst", piece, "T\n=\n\n" + _TEXT)
    for piece in (
        "*", "*a ", "**", "**a ", "`", "`a ", "``", "``a ", "`a`_ ", "a_ ", "a__ ", "|", "|a ", "|a| ", "[", "[1]_ ", "[a ", ":a:`", ":a: ", "_`", "_`a ",
        "<", "`<", "\\", "..", ".. ", "..\n", ".. a\n", ".. [1] a\n", ".. |a| image:: b\n", ".. _a: b\n", ".. _a:\n", "__ a\n", ".. a::\n\n", ".. code::\n\n  a\n\n",
        "- ", "- a\n", "1. ", "1. a\n", "(1) a\n", "a\n", "a\n\n", "a\n  b\n", "a::\n\n  b\n\n", " ", "\n", "\t", ":a: b\n", ":a:\n", "-a b\n", ">>> a\n\n", "| a\n",
        "=", "= ", "= =\n", "=== ===\n", "+", "+-", "+-+\n", "+-+\n| |\n+-+\n", "a\n=\n\n", "=\na\n=\n\n", "a\n-\n\nb\n~\n\n", "-----\n\n", "a-", "http://a ", "a@b ", "(", "'", '"', ":",
        ".. list-table::\n\n   * - a\n     - b\n\n", ".. csv-table::\n\n   a,b\n\n", ".. math::\n\n   a\n\n", ".. raw:: html\n\n   a\n\n", ".. include:: a\n\n", ".. role:: a\n\n",
        ".. replace:: a\n\n", ".. |a| replace:: |a|\n", ".. class:: a\n\n", ".. contents::\n\n", ".. meta::\n   :a: b\n\n", "\u0301\u0327",
    )
} | {
    "rst: nested lists": lambda size: ("".join(" " * 2 * n + "- a\n\n" for n in range(int(size**0.5))).encode(), "a.rst"),
    "rst: nested quotes": lambda size: ("".join(" " * 2 * n + "a\n\n" for n in range(int(size**0.5))).encode(), "a.rst"),
    "rst: nested lists, on one line": repeated("a.rst", "- ", "", "a\n"),
    "rst: nested admonitions": lambda size: (
        "".join(" " * 3 * n + ".. note::\n\n" for n in range(int(size**0.5))).encode(), "a.rst"
    ),
    "rst: nested definitions": lambda size: ("".join(" " * n + "a\n" for n in range(int((2 * size) ** 0.5))).encode(), "a.rst"),
    "rst: nested sections": lambda size: (
        "".join(f"a{n}\n{mark * 6}\n\n" for n, mark in enumerate("=-~^\"'`#*+.,:;!$%&()/<>?@[]_{|}" * (size // 320 + 1))).encode(), "a.rst"
    ),
    "rst: grid table": repeated("a.rst", "| a | b |\n+---+---+\n", "+---+---+\n"),
    "rst: grid table, wide": lambda size: (
        (("+---" * (size // 12) + "+\n") + ("| a " * (size // 12) + "|\n") + ("+---" * (size // 12) + "+\n")).encode(), "a.rst"
    ),
    "rst: grid table, square": lambda size: (
        (("+---" * int((size / 8) ** 0.5) + "+\n" + "| a " * int((size / 8) ** 0.5) + "|\n") * int((size / 8) ** 0.5) + "+---" * int((size / 8) ** 0.5) + "+\n").encode(),
        "a.rst",
    ),
    "rst: grid table, nested": lambda size: (_nested_grid(int((size / 8) ** 0.5)).encode(), "a.rst"),
    "rst: simple table": repeated("a.rst", "a b\n", "= =\n", "= =\n"),
    "rst: simple table, wide": lambda size: (
        ("= " * (size // 6) + "\n" + "a " * (size // 6) + "\n" + "= " * (size // 6) + "\n").encode(), "a.rst"
    ),
    "rst: sections of one name": repeated("a.rst", "Name\n====\n\nText of it.\n\n", ""),
    "rst: sections with names": numbered("a.rst", "Name @\n========\n\nText of it.\n\n", ""),
    "rst: long title": repeated("a.rst", "a", "", "\n" + "=" * 100 + "\n\nText\n"),
    "rst: title not found": repeated("a.rst", "T\\ x\n=====\n\n", ""),
    "rst: substitutions": numbered("a.rst", ".. |a@| replace:: |a@| |a@|\n", ""),
    "rst: footnotes": numbered("a.rst", ".. [#a@] x [#a@]_\n", ""),
    "rst: targets": numbered("a.rst", ".. _a@: b_\n", ""),
    "rst: fields": numbered("a.rst", ":a@: b\n", ""),
    "rst: options": numbered("a.rst", "--a@=b  c\n", ""),
    "rst: enumerated to roman": repeated("a.rst", "i. a\n\n", ""),
    "rst: parsed as whole paragraph": repeated("a.rst", "*a* `b`_ |c| ``d`` e_ \n", ""),
    "rst: bullets without blank": repeated("a.rst", "a\n- b\n", ""),
    "rst: inline literal over lines": repeated("a.rst", "``a\nb\n\n", ""),
}  # fmt: skip


def _nested_grid(depth: int) -> str:
    lines = ["a"]
    for _ in range(max(1, depth // 4)):
        width = len(lines[0])
        rule = "+" + "-" * (width + 2) + "+"
        lines = [rule, *(f"| {line} |" for line in lines), rule]
    return "\n".join(lines) + "\n"
