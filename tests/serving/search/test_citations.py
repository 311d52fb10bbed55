"""Citations: the place of a result, its text there, and one marker for each place."""

import pytest

from parquetry.serving.search.citations import cite, place
from tests.serving.hits import hit


def test_citation_tells_source_place_and_the_sentence_with_its_span():
    text = "Nothing here. Thirty days of holiday. Nothing there."
    (citation,) = cite("how much holiday", [hit(text, start=100)], "english").citations
    assert citation.as_json() == {
        "marker": "[1]",
        "source": "handbook",
        "uri": "file:///docs/leave.pdf",
        "kind": "page",
        "page": 3,
        "span": [100, 152],
        "snippet": "Thirty days of holiday.",
        "snippet_span": [114, 137],
        "header": None,
        "header_span": None,
    }


def test_results_of_one_place_share_a_marker():
    found = [
        hit(page=3),
        hit(page=4),
        hit(page=3, index=7),
        hit(document_id="e", page=3),
        hit(page=3, headings=["Leave"]),
    ]
    cited = cite("one", found, "english")
    assert [each.marker for each in cited.citations] == ["[1]", "[2]", "[1]", "[3]", "[4]"]
    assert [each.marker for each in cited.bibliography] == ["[1]", "[2]", "[3]", "[4]"]


def test_bibliography_has_a_line_for_each_marker():
    (reference,) = cite("one", [hit()], "english").bibliography
    assert reference.line == "[1] Leave (leave.pdf, page 3, Leave > Moving). file:///docs/leave.pdf"
    assert reference.as_json()["line"] == reference.line
    (untitled,) = cite("one", [hit(title="", headings=[])], "english").bibliography
    assert untitled.line == "[1] leave.pdf, page 3. file:///docs/leave.pdf"


def test_nothing_found_is_nothing_cited():
    cited = cite("one", [], "english")
    assert (cited.citations, cited.bibliography) == ((), ())


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, "leave.pdf, page 3, Leave > Moving"),
        ({"kind": "document", "page": 1, "headings": None}, "leave.pdf"),
        ({"kind": "slide", "page": 2, "headings": ["a", "b", "c"]}, "leave.pdf, slide 2, b > c"),
        ({"page": None, "headings": []}, "leave.pdf"),
    ],
)
def test_place_names_what_there_is(columns, expected):
    assert place(hit(**columns).row) == expected
