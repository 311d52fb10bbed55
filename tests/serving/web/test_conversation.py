"""The chat in a field of its page: bounded, and refused where it is none."""

import pytest

from parquetry.serving.web.conversation import (
    HISTORY_CHARACTERS,
    HISTORY_TURNS,
    MOST_STATE,
    MOST_TURNS,
    AnsweredTurn,
    decoded,
    encoded,
    history,
    next_number,
    with_turn,
)


def turn(number, answer="yes", sources=2):
    return AnsweredTurn(
        f"a{number}", f"q{number}", answer, "m", 1 + number * sources, (("doc", 0), ("doc", None))[:sources]
    )


def test_chat_comes_back_from_its_page_as_it_was():
    turns = [turn(0), turn(1, 'quote " \u2028 \U0001f600')]
    assert decoded(encoded(turns)) == turns
    assert decoded("") == []
    assert next_number(turns) == 5
    assert next_number([]) == 1


def test_chat_that_grows_drops_its_oldest_turns():
    turns = []
    for number in range(MOST_TURNS + 5):
        turns = with_turn(turns, turn(number))
    assert [each.id for each in turns] == [f"a{number}" for number in range(5, MOST_TURNS + 5)]
    turns = []
    for number in range(6):
        turns = with_turn(turns, turn(number, "x" * (MOST_STATE // 4)))
        assert len(encoded(turns)) <= MOST_STATE
    assert len(turns) == 3


def test_model_gets_the_newest_turns_that_fit():
    turns = [turn(number) for number in range(10)]
    told = history(turns)
    assert [each["content"] for each in told[::2]] == [f"q{number}" for number in range(10 - HISTORY_TURNS, 10)]
    assert {each["role"] for each in told[1::2]} == {"assistant"}
    long = [*turns[:9], turn(9, "x" * HISTORY_CHARACTERS)]
    assert history(long) == []


@pytest.mark.parametrize(
    "given",
    [
        "{",
        "{}",
        "[[]]",
        '[["a","q","a","m",1,[],false]]',
        '[["a!","q","a","m",1,[],false,""]]',
        '[["a","q","a","m",0,[],false,""]]',
        '[["a","q","a","m",true,[],false,"fine"]]',
        '[["a","q","a","m",1,[["d",-1]],false,""]]',
        '[["a","q","a","m",1,[["d"]],false,""]]',
        "[" * 100_000,
        "[" + ",".join(['["a","q","a","m",1,[],false,""]'] * 21) + "]",
    ],
)
def test_what_is_no_chat_is_refused(given):
    with pytest.raises(ValueError, match=r".+"):
        decoded(given)
