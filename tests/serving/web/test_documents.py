"""Documents as pages show them: the spans of chunks in a text, and reasons for people."""

import pytest

from parquetry.serving.web.documents import Segment, failure_of, item_of, kind_of, segments, text_of_chunks


def chunk(number, start, end):
    return {"chunk_index": number, "start": start, "end": end}


def test_segments_show_where_chunks_begin_and_overlap():
    text = "one two three four"
    found = segments(text, [chunk(0, 0, 7), chunk(1, 4, 13), chunk(2, 14, 18)], 1)
    assert found == [
        Segment("one ", (0,), "even", chosen=False),
        Segment("two", (1,), "shared", chosen=True),
        Segment(" three", (), "odd", chosen=True),
        Segment("four", (2,), "even", chosen=False),
    ]


def test_page_of_chunks_shows_its_part_of_the_text_alone():
    assert [each.text for each in segments("abcdef", [chunk(5, 2, 4)], None)] == ["cd"]
    assert segments("abcdef", [], None) == []


def test_text_of_chunks_is_theirs_at_their_places_and_only_if_they_have_it_all():
    def spoken(start, end, text):
        return {"start": start, "end": end, "text": text}

    assert text_of_chunks([spoken(2, 5, "abc"), spoken(4, 7, "cde"), spoken(9, 10, "f")]) == "\n\nabcde\n\nf"
    assert text_of_chunks([spoken(0, 3, "abc"), spoken(90, 91, "d")]) is None
    assert text_of_chunks([spoken(0, 9, "abc")]) is None
    assert text_of_chunks([]) == ""


def test_failure_names_its_reason_in_words():
    found = failure_of("extract/encrypted: leave.pdf needs a password: remove it")
    assert (found.stage, found.reason) == ("extract", "encrypted")
    assert found.explanation == "the document needs a password"
    assert found.detail == "leave.pdf needs a password: remove it"
    assert failure_of(None).explanation == ""


@pytest.mark.parametrize(
    ("source", "uri", "metadata", "badge"),
    [
        ("uploads", "uploads/default/a.md", "{}", "Upload"),
        ("uploads", "https://example.com/a", "{}", "URL"),
        ("uploads", "https://www.youtube.com/watch?v=x", '{"source": "youtube"}', "YouTube"),
        ("docs", "file:///docs/a.md", None, "docs"),
    ],
)
def test_badge_says_where_a_document_comes_from(source, uri, metadata, badge):
    unset = dict.fromkeys(("title", "size", "chunks", "error", "modified_at", "indexed_at", "tags", "media_type"))
    named = {"document_id": "1", "filename": "a.md", "namespace": "default", "status": "failed", "path": "a.md"}
    told = {"source": source, "uri": uri, "metadata": metadata, "visibility": "public", "created_at": None}
    assert item_of({**unset, **named, **told, "error": "extract/damaged: no"}).badge == badge


def test_types_have_the_names_that_people_use():
    assert kind_of("application/pdf") == "PDF"
    assert kind_of("text/x-python; charset=utf-8") == "python"
    assert kind_of(None) == "Unknown"
