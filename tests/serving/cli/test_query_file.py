"""Files of queries: lines, or JSON objects, or one clear error message."""

import io
import sys

import pytest

from parquetry.errors import SettingsError
from parquetry.serving.cli.query_file import Query, read_queries


def read(tmp_path, content, k=5, mode="hybrid"):
    file = tmp_path / "queries"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_queries(str(file), k, mode)


def test_every_line_is_a_query(tmp_path):
    found = read(tmp_path, "oak table\n\n  größe {x}  \r\nlast\u2028one", k=3, mode="text")
    assert found == [Query(text, 3, "text") for text in ("oak table", "größe {x}", "last\u2028one")]


def test_lines_of_json_may_say_more(tmp_path):
    content = '\ufeff{"query": "oak"}\n\n{"query": "", "k": 2}\n{"query": "{x}", "mode": "vector", "k": 9}\n'
    assert read(tmp_path, content) == [
        Query("oak", 5, "hybrid"),
        Query("", 2, "hybrid"),
        Query("{x}", 9, "vector"),
    ]


def test_stdin_is_a_dash(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("oak\nelm\n"))
    assert [each.text for each in read_queries("-", 5, "hybrid")] == ["oak", "elm"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "there is no query in "),
        (" \n\n", "there is no query in "),
        (b"\xff\xfe", "is not UTF-8"),
        ('{"query": "a"}\noak', "line 2: Invalid JSON"),
        ('{"query": "a"}\n\n{"q": "b"}', "line 3: query: Field required; write"),
        ('{"query": "a", "k": 0}', "line 1: k: Input should be greater than or equal to 1"),
        ('{"query": "a", "k": "3"}', "line 1: k: Input should be a valid integer"),
        ('{"query": "a", "mode": "magic"}', "line 1: mode: Input should be 'hybrid', 'vector' or 'text'"),
        ('{"query": "a", "kk": 3}', "line 1: kk: Extra inputs are not permitted"),
        ('{"query": 5}', "line 1: query: Input should be a valid string"),
    ],
)
def test_wrong_file_is_told_with_its_line(tmp_path, content, problem):
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, content)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_is_told(tmp_path):
    with pytest.raises(SettingsError, match=r"queries cannot be read from .*nothing: No such file"):
        read_queries(str(tmp_path / "nothing"), 5, "hybrid")
