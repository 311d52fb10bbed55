"""Timecodes as people write them."""

import pytest

from parquetry.timecodes import seconds_of, sections, timecode


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (754, "12:34"), (3600, "1:00:00"), (360_000, "100:00:00")]
)
def test_moment_is_written_and_read(seconds, text):
    assert timecode(seconds) == text
    assert seconds_of(text) == int(seconds)


@pytest.mark.parametrize("text", ["", "12", "12:3", "1:2:3", "12:34 ", "a:bc", "-1:00", "12:345"])
def test_other_text_is_no_moment(text):
    assert seconds_of(text) is None


def test_speech_is_divided_into_sections_of_half_a_minute():
    spoken = [(1.0, "one two"), (20.0, " "), (30.9, "three"), (31.0, "four"), (200.0, "five")]
    assert sections(spoken) == [(1.0, ["one", "two", "three"]), (31.0, ["four"]), (200.0, ["five"])]
    assert sections([(1.0, "")]) == []
