"""Deeply nested TOML is refused before parsing gets expensive."""

import pytest

from parquetry.settings.bounded_toml import MAX_DEPTH, loads

DEEP = MAX_DEPTH + 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"a = {'[' * DEEP}{']' * DEEP}", id="lists"),
        pytest.param(f"a = {'[' * 30_000}", id="open-lists"),
        pytest.param("a" + ".a" * DEEP + " = 1", id="keys"),
        pytest.param('"a"' + '."a"' * 30_000 + " = 1", id="keys-in-quotes"),
        pytest.param("[a" + " . a" * 30_000 + "]", id="name-of-a-table"),
        pytest.param("a = {b" + ".b" * 30_000 + " = 1}", id="keys-of-an-inline-table"),
    ],
)
def test_what_nests_deeply_is_refused_before_it_costs(text):
    with pytest.raises(ValueError, match=f"nested deeper than {MAX_DEPTH} levels"):
        loads(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"# {'.' * 200}\n  # {'. ' * 200}\na = 1", id="comment"),
        pytest.param("a = [" + "0.5, " * 500 + "]", id="numbers"),
        pytest.param(f'a = "{"One sentence. " * 20}"', id="prose"),
        pytest.param("a.b.c = 1\n[d.e.f]\ng = {h.i = 2}", id="keys"),
        pytest.param(f"a = {'[' * (MAX_DEPTH - 1)}{']' * (MAX_DEPTH - 1)}", id="as-deep-as-may-be"),
    ],
)
def test_what_people_write_is_read(text):
    assert "a" in loads(text)
