"""Randomly changed settings and side files are accepted, or refused in clear lines."""

from __future__ import annotations

import gzip
import io
import tarfile
import tomllib
import unicodedata
import zipfile
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import strategies as st

from parquetry.errors import ParquetryError
from parquetry.net.robots import Robots
from parquetry.ranking.evaluation import read_dataset
from parquetry.serving.cli.main import run
from parquetry.serving.cli.query_file import read_queries
from parquetry.settings.sections import load_settings, parse_settings
from parquetry.sources.web.listings import entries_of, kind_of, unpacked
from parquetry.sources.web.validators import as_declared
from tests.fuzz import seeds
from tests.fuzz.fuzzing import TIMEOUT, fuzz, keep
from tests.fuzz.mutation import File, mutated

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT)]

LONGEST_LINE = 1000
"""maximum characters of an error line: file names are long, values are truncated"""
WRONG: list[Any] = [
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**400, -0.0, 1e308, float("inf"), float("nan"), "", " ", "\0", "\x1b[2J"),
    *("a" * 5000, "\u202e", "../..", "/", "~nobody/x", "s3://", "http://[", "https://a@b:99999/", "é", "*/5 * * * *"),
    *("0 0 31 2 *", "%", "[", "(a+)+$", "**" * 50, [], {}, [[]], [{}], [""] * 1000, {"": ""}),
    {"a": {"b": [1, {"c": 2}]}},
    *("individual", "sessions", "documents", "fnv", "file:///dev/zero", "2026-02-30", "18446744073709551616"),
]  # fmt: skip
"""values that a user or an attacker might write"""


def told(error: ParquetryError) -> str:
    """Check that an error's lines are readable, and return its class."""
    for line in error.lines:
        assert line.strip(), repr(error)
        assert len(line) < LONGEST_LINE, line
        assert "Traceback" not in line
    return type(error).__name__


def outcome(function: Callable[[], object]) -> str:
    try:
        function()
    except ParquetryError as error:
        return told(error)
    return "read"


def test_changed_settings_files_are_read_or_refused_in_clear_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "parquetry.toml"

    def check(file: File) -> str:
        target.write_bytes(file.content)
        try:
            return outcome(lambda: load_settings(target))
        except Exception:
            keep(file.content, "parquetry.toml")
            raise

    assert {"read", "SettingsError", "WrongSettings"} <= {*fuzz(mutated(seeds.settings()), check, share=0.05)}


def places(values: Any, before: tuple[Hashable, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a tree, sections included."""
    pairs = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    return [each for key, value in pairs for each in ((*before, key), *places(value, (*before, key)))]


def replaced(values: Any, place: tuple[Any, ...], value: object) -> Any:
    if not place:
        return value
    changed = values.copy()
    changed[place[0]] = replaced(values[place[0]], place[1:], value)
    return changed


def test_settings_with_any_values_are_taken_or_refused_in_clear_lines():
    """Try every key of the example files and of the schema with values of every kind."""
    whole = parse_settings({"source": [{"name": "a", "uri": "b"}]}, "x").model_dump(mode="python")
    trees = [whole, *(tomllib.loads(file.content.decode()) for file in seeds.settings())]
    wanted = st.sampled_from([(number, place) for number, tree in enumerate(trees) for place in places(tree)])
    wrong = st.sampled_from(WRONG) | st.recursive(st.text(max_size=9) | st.integers(), st.lists, max_leaves=20)

    def check(changes: tuple[tuple[int, tuple[Any, ...]], list[tuple[float, Any]], Any]) -> str:
        (tree, place), more, value = changes
        values = replaced(trees[tree], place, value)
        for share, another in more:
            there = places(values)
            values = replaced(values, there[int(share * (len(there) - 1))], another) if there else values
        return outcome(lambda: parse_settings(values, "parquetry.toml"))

    several = st.lists(st.tuples(st.floats(0, 1), wrong), max_size=3)
    assert {"read", "WrongSettings"} <= {*fuzz(st.tuples(wanted, several, wrong), check, share=0.05)}


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.md", "# A\n" * 50)
        archive.writestr("b/c.txt", "c")
    return out.getvalue()


def tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("a.md", "b/" + "c" * 150 + ".txt"):
            info = tarfile.TarInfo(name)
            info.size = 40
            archive.addfile(info, io.BytesIO(b"x" * 40))
    return out.getvalue()


SIDE_FILES = {
    "docs/a.zip": zipped(),
    "docs/b.tar": tarred(),
    "docs/c.tar.gz": gzip.compress(tarred()),
    "docs/.parquetry.toml": b'visibility = "individual"\nuser_id = "ada"\ntags = ["a", "b"]\n[access]\nx = 1\n',
    "queries.txt": b'{"query": "oak table", "k": 3, "mode": "text"}\n{"query": "leave"}\n',
    "beir/corpus.jsonl": b'{"_id": "1", "title": "A", "text": "oak table"}\n{"_id": "2", "text": "leave"}\n',
    "beir/queries.jsonl": b'{"_id": "q", "text": "oak"}\n',
    "beir/qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq\t1\t1\n",
    "sitemap.xml": b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>'
    b"<loc>http://a/b</loc><lastmod>2026-01-02T03:04:05Z</lastmod></url></urlset>",
    "feed.xml": b'<rss version="2.0"><channel><item><link>http://a</link><pubDate>Fri, 2 Jan 2026 00:00:00 GMT'
    b"</pubDate></item></channel></rss>",
    "robots.txt": b"User-agent: *\nDisallow: /*/private$\nAllow: /a%20b\nCrawl-delay: 2\nSitemap: http://a/s.xml\n",
    "content-type.txt": b'text/html; charset=iso-8859-1; a*0*=x\'\'%41; a*1=b; q="c\\""',
    "list.txt": b"# pages\nhttp://a/b\nhttps://c/d\n",
}


def entries(content: bytes) -> list[object]:
    content = unpacked(content, 1_000_000, "http://a/sitemap.xml")
    kind = kind_of(content)
    return [] if kind == "page" else list(entries_of(content, kind, "http://a/sitemap.xml"))


def robots(content: bytes) -> float:
    return Robots(lambda _: (200, content), "parquetry").admit(httpx.URL("http://a/b/private"))


def test_changed_side_files_are_read_or_refused_in_clear_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, content in SIDE_FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "docs" / "a.md").write_text("# A\n\nb\n")
    readers: dict[str, Callable[[Path], object]] = {
        "plan": lambda file: plan(capsys),
        "queries.txt": lambda file: read_queries(str(file), 3, "text"),
        "beir": lambda file: read_dataset(tmp_path / "beir"),
        "robots.txt": lambda file: robots(file.read_bytes()),
        "content-type.txt": lambda file: as_declared(b"Gr\xf6\xdfe", file.read_bytes().decode("latin-1"), "a.txt"),
        "web": lambda file: entries(file.read_bytes()),
    }

    def check(file: File) -> str:
        name = file.name
        target = tmp_path / name
        target.write_bytes(file.content)
        kind = {"docs": "plan", "beir": "beir"}.get(name.partition("/")[0], name if name in readers else "web")
        try:
            return f"{kind}: {outcome(lambda: readers[kind](target))}"
        except Exception:
            keep(file.content, name.replace("/", "-"))
            raise
        finally:
            target.write_bytes(SIDE_FILES[name])

    files = [File(content, name) for name, content in SIDE_FILES.items()]
    # Which changes are tried depends on the modules that are imported: Hypothesis takes constants from them.
    assert {"plan: read", "queries.txt: read", "beir: read", "web: read"} <= {check(file) for file in files}
    seen = fuzz(mutated(files), check, share=0.1)
    assert {"plan: read", "web: read"} <= {*seen}


def plan(capsys: pytest.CaptureFixture[str]) -> None:
    """Run the command on a folder with such a file, and check its output."""
    code = run(["plan", "docs"])
    said = capsys.readouterr()
    assert code == 0, (code, said.err)
    assert "Traceback" not in said.err
    controls = {letter for letter in said.out + said.err if unicodedata.category(letter) == "Cc"} - {"\n"}
    assert not controls
