"""A statement in a video is cited with the time at which it is made."""

import pytest

from parquetry.serving.search.citations import at_moment, cite
from tests.serving.hits import hit

VIDEO = "https://www.youtube.com/watch?v=kiln_dries-"
TEXT = "## 0:31\n\nWelcome to the kiln.\n\n## 1:02:03\n\nOak needs nine weeks.\n\n## 1:02:40\n\nGoodbye."


@pytest.mark.parametrize(
    ("headings", "said", "expected"),
    [
        (["0:31"], "Welcome to the kiln.", "&t=31s"),
        (["0:31"], "Oak needs nine weeks.", "&t=3723s"),
        (["0:31"], "Goodbye.", "&t=3760s"),
        (["Introduction"], "", ""),
        ([], "", ""),
        (["12:34"], "", "&t=754s"),
        (["Introduction", "2:05"], "", "&t=125s"),
    ],
)
def test_video_is_cited_at_the_last_timecode_before_the_words(headings, said, expected):
    text = TEXT[: TEXT.index(said) + len(said)] if said else ""
    assert at_moment(VIDEO, text, headings) == VIDEO + expected


def test_other_documents_with_times_in_their_headings_are_cited_as_they_are():
    assert at_moment("file:///minutes.md", TEXT, ["12:30"]) == "file:///minutes.md"


def test_citation_and_bibliography_lead_to_the_moment():
    found = hit(TEXT, uri=VIDEO, headings=["0:31"])
    cited = cite("how many weeks for oak", [found], "english")
    assert cited.citations[0].snippet == "Oak needs nine weeks."
    assert cited.citations[0].uri == cited.bibliography[0].uri == f"{VIDEO}&t=3723s"
