"""Files that people write: whatever is in them or at their place, reading ends."""

import os

import pytest

from knowledge.small_file import DEEPEST_TOML, parse_toml, read_small

DEEP = DEEPEST_TOML + 1


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
    with pytest.raises(ValueError, match=f"nests tables or lists more than {DEEPEST_TOML} deep"):
        parse_toml(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"# {'.' * 200}\n  # {'. ' * 200}\na = 1", id="comment"),
        pytest.param("a = [" + "0.5, " * 500 + "]", id="numbers"),
        pytest.param(f'a = "{"One sentence. " * 20}"', id="prose"),
        pytest.param("a.b.c = 1\n[d.e.f]\ng = {h.i = 2}", id="keys"),
        pytest.param(f"a = {'[' * (DEEPEST_TOML - 1)}{']' * (DEEPEST_TOML - 1)}", id="as-deep-as-may-be"),
    ],
)
def test_what_people_write_is_read(text):
    assert "a" in parse_toml(text.encode())


def test_a_file_ends_at_its_limit(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"x" * 10)
    assert read_small(file, 10) == b"x" * 10
    with pytest.raises(OSError, match="has more than 9 bytes"):
        read_small(file, 9)
    with pytest.raises(OSError, match="has more than 100 bytes"):
        read_small("/dev/zero", 100)


def test_what_is_no_file_is_told_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    assert read_small(tmp_path / "pipe", 100) == b""
    with pytest.raises(OSError, match="is not a file"):
        read_small(tmp_path / "pipe", 100, anything=False)
    with pytest.raises(OSError, match="symbolic links"):
        read_small(tmp_path / "link", 100, anything=False)
    with pytest.raises(OSError, match="is a folder"):
        read_small(tmp_path, 100)
