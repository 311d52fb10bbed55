"""Tokens have one form, and a mistyped one is refused without a look at the store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.serving.access.token_text import TOKEN_PREFIX, digest_of, is_token, new_token, shown

TOKEN = "pqt_4cNHjx1SEGJaSUgMHf6ItwZIIBPsRu3HrH6cW20tuSGP3XUmPq"


def test_new_tokens_differ_and_have_the_form():
    made = {new_token() for _ in range(1000)}
    assert len(made) == 1000
    assert all(is_token(each) and len(each) == 53 and each.startswith(TOKEN_PREFIX) for each in made)
    assert all(each[4:].isalnum() and each.isascii() for each in made)


@given(st.data())
def test_a_token_with_one_other_character_is_refused(data):
    token = new_token()
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters().filter(lambda letter: letter != token[place]))
    assert not is_token(token[:place] + other + token[place + 1 :])


@given(st.text())
def test_any_other_text_is_refused(text):
    assert not is_token(text)
    assert not is_token(TOKEN_PREFIX + text)


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1], lambda t: f" {t}", lambda t: f"{t}\n", str.upper, lambda t: t * 2]
)
def test_a_token_that_is_cut_or_padded_is_refused(change):
    assert not is_token(change(new_token()))


def test_digest_is_sha_256_and_the_beginning_is_too_short_to_guess_the_rest():
    token = new_token()
    assert len(digest_of(token)) == 32
    assert shown(token) == token[:12]
