"""`search --why-not`: where a missed document stands, and nothing about what the caller may not see."""

import pytest

pytestmark = pytest.mark.slow


def test_verdict_with_its_places(desk):
    told = desk("search", "holiday", "-k", "1", "--why-not", "oak.txt")
    assert (told.code, told.stderr) == (0, "")
    assert told.stdout.startswith("oak.txt: beyond-k: it ranks ")
    assert "by vector: rank " in told.stdout
    assert desk("search", "oak", "--why-not", "oak.txt").stdout.startswith("oak.txt: found: it is result 1.")


def test_verdict_as_json(desk):
    told = desk("search", "oak", "--filename", "*.md", "--why-not", "oak.txt", "--json").json
    assert (told["verdict"], told["conditions"]) == ("filtered", ["filename: *.md"])
    told = desk("search", "oak", "--why-not", "broken.docx", "--json").json
    assert told["verdict"] == "not-indexed"


def test_hidden_document_is_told_like_none(desk):
    (desk.folder / "own.toml").write_text(
        '[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n[[source]]\nname = "docs"\nuri = "docs"\n'
        'visibility = "individual"\nuser_id = "ada"\n'
    )
    assert desk("refresh", "--direct", "--config", "own.toml").code == 0
    hidden = desk("search", "oak", "--user", "bob", "--why-not", "oak.txt").stdout
    missing = desk("search", "oak", "--user", "bob", "--why-not", "elm.txt").stdout
    assert hidden.replace("oak.txt", "NAME") == missing.replace("elm.txt", "NAME")
    assert "no-such-document" in hidden
    assert "no-such-document" not in desk("search", "oak", "--user", "ada", "--why-not", "oak.txt").stdout


def test_ambiguous_name_and_several_queries_are_refused(desk):
    assert "means 2 documents" in desk("search", "leave", "--why-not", "*leave*").complaint
    (desk.folder / "queries.txt").write_text("oak\nleave\n")
    assert "one query" in desk("search", "--queries", "queries.txt", "--why-not", "oak.txt").complaint
