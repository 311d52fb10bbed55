"""No regular expression takes time that grows with the square of a text, regardless of the text's origin."""

import pytest

from tests.pattern_attacks import attacks, patterns, seconds

pytestmark = pytest.mark.slow

FEW = 3000
"""repeats; ten times as many take ten times as long if matching is linear, a hundred times if it is quadratic"""
BETWEEN = 25
SHORT = 0.002
"""seconds of processor time below which a ratio proves nothing"""
ENDLESS = 10
BOUNDED = {
    "parquetry.serving.search.sentences._WORD_BEFORE": "40 characters before a mark",
    "parquetry.storage.replaced_files._MISSING[2]": "what DuckDB says of a file of the corpus",
    "parquetry.sessions.distill.injection._ORDERS": "statements, which have a longest length",
    "parquetry.sessions.distill.injection._ORDERS_ELSEWHERE": "statements, which have a longest length",
}
"""patterns that only see short texts -> those texts"""
LINES = dict.fromkeys(
    (f"parquetry.serving.search.sentences.{name}" for name in ("_HEADING", "_ROW", "_CODE")), ("match",)
)
"""methods of patterns that are used under other names"""
PATTERNS = patterns()


def growth(name: str) -> dict[str, tuple[float, float]]:
    """Return text -> seconds for few repeats of it and for ten times as many, where the growth is too large."""
    pattern, methods = PATTERNS[name]
    methods = LINES.get(name, methods)
    found = {}
    for shown, text in attacks(pattern).items():
        few = seconds(pattern, text(FEW), methods, ENDLESS)
        many = seconds(pattern, text(10 * FEW), methods, ENDLESS) if few < ENDLESS else few
        if BETWEEN * max(few, SHORT) < many < ENDLESS:
            # Other load on the machine can turn a few milliseconds into many.
            few, many = (min(seconds(pattern, text(n), methods, ENDLESS) for _ in range(3)) for n in (FEW, 10 * FEW))
        if many > BETWEEN * max(few, SHORT):
            found[shown] = (few, many)
            if many > ENDLESS:
                break
    return found


@pytest.mark.parametrize("name", sorted(PATTERNS.keys() - BOUNDED.keys()))
def test_time_to_search_grows_with_the_text(name):
    assert growth(name) == {}
