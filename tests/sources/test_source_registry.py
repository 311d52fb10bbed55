"""Interpretation of a target on the command line."""

import os

import pytest

from parquetry.errors import SettingsError
from parquetry.settings.sections import parse_settings
from parquetry.sources.registry import open_source, scope_of_source, scopes_of


@pytest.fixture
def docs(tmp_path):
    for path in ("docs/a.md", "docs/sub/b.md", "docs/sub/deep/c.md", "docs/subway/d.md", "other/e.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    return tmp_path


def settings_of(folder, *sources):
    tables = [{"name": name, "uri": str(folder / path), **more} for name, path, more in sources]
    return parse_settings({"source": tables}, "test")


def short(scopes):
    return [(scope.namespace, scope.name, scope.prefix) for scope in scopes]


def test_no_target_means_every_configured_source(docs):
    settings = settings_of(docs, ("one", "docs", {}), ("two", "other", {"namespace": "hr"}))
    assert short(scopes_of(settings, ())) == [("default", "one", ""), ("hr", "two", "")]
    assert short(scopes_of(settings, (), "hr")) == [("hr", "two", "")]


def test_no_target_and_no_source_says_what_to_do(docs):
    with pytest.raises(SettingsError, match="name folders to refresh, or add a"):
        scopes_of(settings_of(docs), ())
    with pytest.raises(SettingsError, match="no source is configured in namespace hr"):
        scopes_of(settings_of(docs, ("one", "docs", {})), (), "hr")


def test_target_is_a_name_a_path_within_a_source_or_a_place_of_its_own(docs):
    settings = settings_of(docs, ("one", "docs", {"namespace": "hr"}))
    found = scopes_of(settings, ("one",))
    assert short(found) == [("hr", "one", "")]
    assert short(scopes_of(settings, (str(docs / "docs/sub"),))) == [("hr", "one", "sub")]
    assert short(scopes_of(settings, ((docs / "docs/sub/b.md").as_uri(),))) == [("hr", "one", "sub/b.md")]
    place = (docs / "other").as_uri()
    assert short(scopes_of(settings, (str(docs / "other"),))) == [("default", place, "")]
    alone = (docs / "other/e.md").as_uri()
    assert short(scopes_of(settings, (str(docs / "other/e.md"),), "x")) == [("x", alone, "")]


def test_overlapping_targets_concern_every_document_once(docs):
    settings = settings_of(docs, ("one", "docs", {}))
    sub, deep, subway = (str(docs / "docs" / each) for each in ("sub", "sub/deep", "subway"))
    assert short(scopes_of(settings, (deep, sub, subway, sub))) == [
        ("default", "one", "sub"),
        ("default", "one", "subway"),
    ]
    assert short(scopes_of(settings, (sub, "one", deep))) == [("default", "one", "")]


def test_target_with_a_name_that_is_no_text_is_found(docs):
    raw = docs / os.fsdecode(b"docs/caf\xe9")
    raw.mkdir()
    (raw / "x.md").write_text("x")
    (scope,) = scopes_of(settings_of(docs, ("one", "docs", {})), (str(raw),))
    assert scope.prefix == "caf\\xe9"
    assert [item.path for item in open_source(scope, str(docs / "corpus")).scan(scope.prefix)] == ["caf\\xe9/x.md"]
    (own,) = scopes_of(settings_of(docs), (str(raw),))
    assert [item.path for item in open_source(own, str(docs / "corpus")).scan(own.prefix)] == ["x.md"]


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("nowhere", r"nowhere is neither a folder or file nor the name of a source \(one\)"),
        (os.fsdecode(b"caf\xe9"), r"caf\\xe9 is neither"),
        ("n" * 5000, "cannot be opened: File name too long"),
    ],
)
def test_target_that_is_nothing_is_refused_in_printable_words(docs, target, problem):
    with pytest.raises(SettingsError, match=problem) as raised:
        scopes_of(settings_of(docs, ("one", "docs", {})), (target,))
    str(raised.value).encode("utf-8")


def test_source_of_stored_documents_is_found_by_name_or_place(docs):
    settings = settings_of(docs, ("one", "docs", {"namespace": "hr"}))
    assert short([scope_of_source(settings, "hr", "one")]) == [("hr", "one", "")]
    place = (docs / "other").as_uri()
    assert short([scope_of_source(settings, "default", place)]) == [("default", place, "")]
    with pytest.raises(SettingsError, match="source 'one' of namespace default is not configured any more"):
        scope_of_source(settings, "default", "one")


def test_source_of_an_unknown_kind_is_refused(docs):
    settings = parse_settings({"source": [{"name": "bucket", "uri": "gopher://x/y"}]}, "test")
    with pytest.raises(SettingsError, match="source bucket: gopher:// is not supported"):
        open_source(scopes_of(settings, ())[0], "corpus")


def test_source_knows_its_corpus_and_access(docs):
    tables = {"visibility": "organization", "org_id": "acme", "tags": ["t"], "include": ["**/*.md"]}
    (scope,) = scopes_of(settings_of(docs, ("one", "docs", tables)), ())
    source = open_source(scope, str(docs / "docs" / "sub"))
    items = {item.path: item for item in source.scan("")}
    assert sorted(items) == ["a.md", "subway/d.md"]
    assert (items["a.md"].access.visibility, items["a.md"].access.org_id, items["a.md"].access.tags) == (
        "organization",
        "acme",
        ("t",),
    )
