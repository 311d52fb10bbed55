"""Passages are found on a page, whatever their extraction made of them."""

from parquetry.extract.drawing import blocks, places


def told(text, passage):
    return [text[first : last + 1] for first, last in places(text, passage)]


def test_sentences_are_found_across_lines_hyphens_and_marks():
    page = "A prize\nfor a chair. The jury chose the Mer-\nrow chair out of 212 entries."
    assert told(page, "# A prize for a chair\n\nThe jury chose the Merrow chair out of 212 entries.") == [
        "A prize\nfor a chair",
        "The jury chose the Mer-\nrow chair out of 212 entries",
    ]


def test_sentence_that_stands_twice_is_found_after_the_one_before_it():
    page = "All rights reserved. Oak is hard. Ash is light. All rights reserved."
    (_, first), (_, last) = list(places(page, "Ash is light. All rights reserved."))
    assert first < last == page.rindex("d")


def test_passage_without_whole_sentences_on_the_page_is_found_by_its_parts():
    words = " ".join(f"word{number}" for number in range(30))
    found = told(words, f"{words} and what follows on the next page")
    assert found[0].startswith("word0 word1")
    assert told("nothing of it", "an entirely different passage") == []


def test_lines_of_a_column_are_one_block_and_columns_are_several():
    left, right = (0.0, 100.0), (150.0, 250.0)
    boxes = [(low, 20.0 * line, high, 20.0 * line + 15) for low, high in (left, right) for line in range(3)]
    assert blocks(boxes) == [(0.0, 0.0, 100.0, 55.0), (150.0, 0.0, 250.0, 55.0)]
    assert len(blocks([(0, 0, 9, 9), (0, 500, 9, 509)])) == 2
