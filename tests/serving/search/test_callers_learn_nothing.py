"""The output of commands for a caller is the same, byte by byte, with and without other users' documents."""

import re

import pytest

from parquetry.serving.cli.main import run
from tests.serving.conftest import Desk

pytestmark = pytest.mark.slow

WORD = "zanzibar"
OURS = {
    "leave.md": "# Leave\n\nEverybody has thirty days of holiday.\n\n## Moving\n\nOne more day for moving house.\n",
    "oak.txt": "The oak table has four legs and costs 640 euros.",
    "copy.txt": "The oak table has four legs and costs 640 euros.",
    "empty.txt": "",
    "broken.docx": b"PK\x03\x04 this is no document at all",
}
THEIRS = {
    f"{WORD}.md": f"# {WORD}\n\nThe {WORD} holiday oak table is secret.\n",
    # Texts that are public word by word, or nearly so.
    "oak.txt": OURS["oak.txt"],
    "leave.md": OURS["leave.md"],
    "oak-too.txt": OURS["oak.txt"] + f" And {WORD}.",
    "empty.txt": "",
    f"{WORD}.docx": OURS["broken.docx"],
}
SETTINGS = """
[corpus]
root = "corpus"
[extraction]
workers = 1
[[source]]
name = "docs"
uri = "docs"
"""
THEIR_SETTINGS = f"""
[[source]]
name = "{WORD}"
uri = "theirs"
visibility = "individual"
user_id = "bob"
tags = ["{WORD}"]
"""


@pytest.fixture(scope="module", params=[("--user", "eve"), ("--org", "acme"), ("--user", "")], ids=" ".join)
def caller(request):
    return request.param


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Create the folder of a corpus with our documents alone, and of one with others' documents as well."""
    folders = []
    with pytest.MonkeyPatch.context() as patch:
        for name, settings in (("alone", SETTINGS), ("crowded", SETTINGS + THEIR_SETTINGS)):
            folder = tmp_path_factory.mktemp(name) / "desk"
            for place, documents in (("docs", OURS), ("theirs", THEIRS)):
                (folder / place).mkdir(parents=True)
                for path, text in documents.items():
                    content = text if isinstance(text, bytes) else text.encode()
                    (folder / place / path).write_bytes(content)
            (folder / "parquetry.toml").write_text(settings, "utf-8")
            (folder / "questions.txt").write_text(f"oak\n{WORD}\nholiday\noak\n", "utf-8")
            patch.chdir(folder)
            assert run(["refresh", "--direct"]) in (0, 1)
            folders.append(folder)
    return folders


ASKED = [
    *(
        [
            ["search", "--mode", mode, "--json", "--explain", "-k", "20", "oak table"]
            for mode in ("text", "vector", "hybrid")
        ]
    ),
    ["search", "--json", "--explain", "-k", "20", WORD],
    ["search", "--json", "--duplicates", "-k", "20", "oak"],
    ["search", "--json", "--level", "document", "--diversify", "--citations", "--context", "2", "--full", "oak"],
    ["search", "--type", "both", "--json", "oak"],
    ["search", "--queries", "questions.txt", "--json", "--explain", "-k", "20"],
    ["search", "--queries", "questions.txt", "--citations", "-k", "20"],
    ["search", "--source", WORD, "oak"],
    ["search", "--source", "dosc", "oak"],
    ["search", "--tag", WORD, "oak"],
    ["search", "--namespace", WORD, "oak"],
    ["search", "--filename", f"{WORD}*", "--json", "oak"],
    ["search", "--where", f"error(title) = '{WORD}'", "oak"],
    ["search", "--where", "1 / (length(title) - 8) > 0", "--json", "oak"],
    ["search", "--where", "CAST(title AS INTEGER) > 0", "--json", "oak"],
    ["documents"],
    ["documents", "--json"],
    ["documents", "--notes", "--json"],
    ["documents", "--worst", "20", "--json"],
    ["documents", "--worst", "20"],
    ["documents", "--status", "failed", "--json"],
    ["documents", "*"],
    ["documents", f"{WORD}.md"],
    ["documents", "zanzibr.md"],
    ["show", "oak.txt"],
    ["show", f"{WORD}.md"],
    ["show", "zanzibr.md"],
    ["show", f"{WORD}/oak.txt"],
    ["chunks", "leave.md", "--json"],
    ["chunks", f"{WORD}.md"],
    ["entries", "--json"],
    ["entries", "--history", "--json"],
    ["decisions", "--json"],
    [
        "sql",
        "--json",
        "SELECT * EXCLUDE (uri, run_id, revision, etag, indexed_at, created_at, modified_at) FROM documents ORDER BY 1",
    ],
    ["sql", "--json", "SELECT word FROM parts.words ORDER BY ALL"],
    ["sql", "--json", "FROM search_text('oak', 20) SELECT path: filename, score"],
    ["sql", "--json", "SELECT count(*) FROM runs"],
    ["sql", f"FROM {WORD}"],
    ["sql", "FROM searches"],
    ["sql", "FROM sessions"],
]


def normal(text, folder):
    """Remove the differences between any two corpora: paths, times, run ids, seconds."""
    text = text.replace(str(folder), "")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:?\d\d|Z)?", "TIME", text)
    text = re.sub(r'"?\b(run_id|revision|etag)\b"?: ?"?[\w-]+"?', r"\1", text)
    text = re.sub(r"\d+\.\d+ s\b", "SECONDS", text)
    return re.sub(r'("seconds": ?)(\{[^}]*\}|[\d.e-]+)', r"\1", text)


@pytest.mark.parametrize("arguments", ASKED, ids=" ".join)
def test_documents_of_others_change_nothing_that_a_caller_is_told(arguments, corpora, caller, monkeypatch, capsys):
    told = []
    for folder in corpora:
        monkeypatch.chdir(folder)
        done = Desk(folder, capsys)(*arguments[:1], *caller, *arguments[1:])
        told.append((done.code, normal(done.stdout, folder), normal(done.stderr, folder)))
    alone, crowded = told
    assert crowded == alone
    assert alone[0] in (0, 2)


def test_export_of_others_documents_is_the_same(corpora, caller, monkeypatch, capsys, tmp_path):
    told, held = [], []
    for number, folder in enumerate(corpora):
        monkeypatch.chdir(folder)
        target = tmp_path / str(number)
        done = Desk(folder, capsys)("export", *caller, str(target), "--json")
        told.append({**done.json, "file": None})
        held.append((target / "corpus.duckdb").read_bytes())
    assert told[0] == told[1]
    assert WORD.encode() not in held[1]


def test_the_owner_sees_what_nobody_else_does(corpora, monkeypatch, capsys):
    """Otherwise the comparisons above would prove nothing."""
    monkeypatch.chdir(corpora[1])
    found = Desk(corpora[1], capsys)("search", "--user", "bob", "--json", "-k", "20", WORD).json["results"]
    assert any(WORD in hit["text"] for hit in found)
