"""Places are compared as places, for every way of writing them."""

import pytest

from parquetry.model import LeftOut
from parquetry.settings.lines import lines_of
from parquetry.settings.sections import parse_settings
from parquetry.sources.nesting import Inner, Owners, inner_of, place_in, spot_of, told
from parquetry.sources.registry import PublishedSource, scopes_of


@pytest.mark.parametrize(
    ("inner", "outer", "below"),
    [
        ("docs/private", "docs", "private"),
        ("./docs/../docs/private/", "docs/", "private"),
        ("docs", "docs/.", ""),
        ("docsx", "docs", None),
        ("docs", "docs/private", None),
        ("s3://box/docs/private/", "s3://box/docs", "private"),
        ("s3://box/docs", "s3://box", "docs"),
        ("s3://box/docs", "s3://box/docs/", ""),
        ("s3://box/docsx", "s3://box/docs", None),
        ("s3://boxes/docs", "s3://box", None),
        ("s3://box/Docs/x", "s3://box/docs", None),
        ("az://box/docs/x", "abfs://box/docs", "x"),
        ("abfss://box@acme.dfs.core.windows.net/docs/x", "abfs://box@acme.blob.core.windows.net/docs", "x"),
        ("abfss://box@acme.dfs.core.windows.net/docs/x", "abfs://box@other.dfs.core.windows.net/docs", None),
        ("gcs://box/a/b", "gs://box/a", "b"),
        ("sftp://host/a/b", "sftp://host/a", "b"),
        ("sftp://other/a/b", "sftp://host/a", None),
        ("https://example.org/a/b", "https://example.org/a", None),
        ("https://example.org/a/", "https://example.org/a", ""),
        ("s3://box/docs", "gs://box/docs", None),
    ],
)
def test_place_is_below_another_or_not(inner, outer, below):
    assert spot_of(inner).below(spot_of(outer)) == below


def test_buckets_of_two_servers_are_two_places(monkeypatch):
    here = spot_of("s3://box", {"endpoint_url": "https://minio.intern"})
    assert spot_of("s3://box/docs").below(here) is None
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://minio.intern")
    assert spot_of("s3://box/docs").below(here) == "docs"
    assert spot_of("sftp://host/a", {"username": "x", "archives": True}) == spot_of("sftp://host/a", {"username": "x"})
    assert spot_of("sftp://host/a", {"username": "x"}) != spot_of("sftp://host/a")


def test_link_to_a_folder_is_the_folder(tmp_path):
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert spot_of(str(tmp_path / "link" / "sub")).below(spot_of((tmp_path / "real").as_uri())) == "sub"


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("hr", "staff"),
        ("hr/a.md", "staff"),
        ("hr/pay/a.md", "pay"),
        ("hrx/a.md", None),
        ("box.zip!/a.md", "box"),
        ("box.zip", "box"),
        ("a.md", None),
        ("it/hr/a.md", None),
    ],
)
def test_document_belongs_to_the_source_at_or_above_its_path(path, owner):
    inner = [Inner("hr/pay", "pay", "x"), Inner("hr", "staff", "x"), Inner("box.zip", "box", "x")]
    found = Owners(inner).of(path)
    # Here a nested source's own nested source does not matter: both are left out.
    assert (found.source if found else None) == (owner if owner != "pay" else "staff")


def test_globs_share_the_documents_of_one_place_and_the_earlier_source_wins():
    tables = [
        {"name": "pages", "uri": "docs", "include": ["*.md"], "exclude": ["drafts/"]},
        {"name": "rest", "uri": "./docs", "include": ["guide*"]},
    ]
    settings = parse_settings({"source": tables}, "test")
    sources = [(source, "default") for source in settings.source]
    assert inner_of(settings.source[0], sources) == ()
    owners = Owners(inner_of(settings.source[1], sources))
    paths = ("guide.md", "guide.pdf", "drafts/guide.md", "guide.zip!/x.md")
    assert [path for path in paths if owners.of(path) is not None] == ["guide.md"]
    assert owners.of("guide.md", document=False) is None


def test_line_names_three_sources_and_counts_the_others():
    left = [LeftOut("hr", "staff", 5), LeftOut("", "pages", 1), LeftOut("b", "b", 1), *[LeftOut("c", "c", 1)] * 2]
    assert told("docs", left) == (
        "source docs leaves 5 documents to source staff (hr), 1 document to source pages, 1 document to source b (b), "
        "and 2 to 2 more"
    )


def test_place_in_a_source_of_one_file_is_the_file():
    assert place_in("docs/", "a/b.md") == "docs/a/b.md"
    assert place_in("docs/b.md", "b.md") == "docs/b.md"
    assert place_in("docs", "") == "docs"


def test_lines_of_a_key_are_those_of_its_tables():
    first, second = (
        '[[source]]\nname = "uri"\n  uri = "a"\n\n',
        '[[ source ]]\n"uri" = "b"\n[source.options]\nuri = 1\n',
    )
    text = f'[corpus]\nroot = "x"\n{first}{second}'
    assert lines_of(text, "source", "uri", 2) == [5, 8]
    assert lines_of('source = [{uri = "a"}, {uri = "b"}]', "source", "uri", 2) == [1, 1]


def test_place_that_a_corpus_knows_is_refreshed_as_what_it_is_known_as(tmp_path):
    settings = parse_settings({}, "test")
    known = [
        PublishedSource("default", "s3://box/docs/", "documents"),
        PublishedSource("default", "s3://box/chats", "sessions"),
        PublishedSource("hr", "s3://box", "documents"),
        PublishedSource("default", "handbook", "documents"),
    ]

    def asked(target, **options):
        (scope,) = scopes_of(settings, (target,), published=lambda: known, **options)
        return scope.namespace, scope.name, scope.prefix, [each.path for each in scope.inner]

    assert asked("s3://box/docs/deep/a.md") == ("default", "s3://box/docs/", "deep/a.md", [])
    assert asked("s3://box/docs") == ("default", "s3://box/docs/", "", [])
    assert asked("s3://box/other") == ("default", "s3://box/other", "", [])
    assert asked("s3://box/other", namespace="hr") == ("hr", "s3://box", "other", ["docs", "chats"])
    assert asked("s3://box") == ("default", "s3://box", "", ["docs", "chats"])
    assert asked("s3://box/chats/2031", content="sessions") == ("default", "s3://box/chats", "2031", [])
    assert asked("s3://box/chats/2031") == ("default", "s3://box/chats/2031", "", [])
