"""Lines of a result: the words of the question are marked, and nothing of the text is lost or added."""

from hypothesis import given
from hypothesis import strategies as st

from parquetry.serving.web.marking import LONGEST_EXTRACT, columns, extract, marked


def words(parts):
    return [part.text for part in parts if part.marked]


def test_words_are_marked_in_any_inflection_and_stop_words_are_not():
    assert words(marked("The fans of the bays RUN.", "the fan runs in a bay", "english")) == ["fans", "bays", "RUN"]
    assert words(marked("Größe und Öl", "ol", "german")) == ["Öl"]
    assert words(marked("to be", "to be", "english")) == ["to", "be"]


@given(st.text(max_size=200), st.text(max_size=40))
def test_pieces_make_up_the_text(text, query):
    assert "".join(part.text for part in marked(text, query, "english")) == text


@given(st.text(max_size=2000), st.integers(0, 2000), st.integers(0, 300))
def test_extract_is_short_and_of_one_line(text, start, length):
    start = min(start, len(text))
    shown = extract(text, (start, min(len(text), start + length)))
    assert "\n" not in shown
    assert len(shown) <= LONGEST_EXTRACT + 4


def test_extract_begins_with_the_best_sentence_and_drops_the_marks_of_tables():
    text = "First. " + "The second one is long enough to be shown alone. " * 9
    assert extract(text, (7, 20)).startswith("… The second one")
    table = "| bay | noise |\n| --- | --- |\n| 1 | 94 |\n"
    assert extract(table, (0, 5)) == "bay · noise 1 · 94"
    assert columns("sort(|leaf| leaf.number)") == "sort(|leaf| leaf.number)"
