"""Answers of a model taken apart: few marks mean something, numbers of known sources link, the rest is text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parquetry.serving.web.answer_blocks import GrowingAnswer, blocks_of, cited_in
from parquetry.serving.web.rendering import render

KNOWN = {1, 2, 12}
ANSWER = """# Rules
Thirty days **a year** [1], or more [2, 12].
Not [9], and not [1, 9].

- one
- two, which
  goes on `x[1]`

3. third
4) fourth [12]
```
code [1] **x**

- no item
```
| a | b |
|---|---|
"""


def html(text):
    return render("answer_part.html", blocks=blocks_of(text, KNOWN)).strip()


def test_answer_is_paragraphs_lists_code_and_numbers_of_known_sources():
    blocks = blocks_of(ANSWER, KNOWN)
    assert [block.kind for block in blocks] == ["heading", "paragraph", "bullets", "numbers", "code", "table"]
    assert [(each.kind, each.text) for each in blocks[1].lines[0]] == [
        ("text", "Thirty days "),
        ("strong", "a year"),
        ("text", " "),
        ("cite", "1"),
        ("text", ", or more "),
        ("cite", "2"),
        ("cite", "12"),
        ("text", "."),
    ]
    assert [each.kind for each in blocks[1].lines[1]] == ["text"]
    assert [each.text for each in blocks[2].lines[1]] == ["two, which goes on ", "x[1]"]
    assert (blocks[3].first, len(blocks[3].lines)) == (3, 2)
    assert blocks[4].lines[0][0].text == "code [1] **x**\n\n- no item"
    assert cited_in(ANSWER, KNOWN) == [1, 2, 12]


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[click](javascript:alert(1)) ![x](http://evil.example/x.png) <http://evil.example>",
        "**<b onclick=x>**",
        "`</code><script>`",
        '```\n</code></pre><script src="http://evil.example">\n```',
        "- <style>*{display:none}</style>",
        '[1" onclick="x]',
        "# </p><iframe>",
    ],
)
def test_marks_of_pages_in_an_answer_are_text(hostile):
    shown = html(hostile)
    opened = {part.split(">")[0].split(" ")[0].strip("/") for part in shown.split("<")[1:]}
    assert opened <= {"p", "ul", "li", "pre", "code", "strong", "br"}
    assert "href" not in shown
    assert "src=" not in shown or "src=&#34;" in shown or "src=x" in shown


@example(["- ", "one\n", "- ", "two\n"])
@given(st.lists(st.sampled_from([*ANSWER.splitlines(keepends=True), "[1", "]", "*", "`", "\n", "```\n", "a", "- "])))
def test_growing_answer_shows_at_each_moment_what_the_whole_text_shows(pieces):
    growing, shown, text = GrowingAnswer(), [], ""
    for piece in pieces:
        growing.add(piece)
        text += piece
        kept, blocks = growing.blocks(KNOWN)
        shown = [*shown[:kept], *blocks]
        whole = blocks_of(text, KNOWN)
        assert [(each.kind, each.lines, each.first) for each in shown] == [
            (each.kind, each.lines, each.first) for each in whole
        ]
    assert growing.length == len(text)
