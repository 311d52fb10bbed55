"""A document belongs to one source: the innermost source that contains its location."""

import zipfile

import pytest

from parquetry.errors import SettingsError
from parquetry.flows.pipelines.documents import Request, plan_only, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import load_settings
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake
from parquetry.storage.search.filters import Caller, Filters
from parquetry.tasks.engine.base import DirectEngine

pytestmark = pytest.mark.slow

HEAD = '[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n'
DOCS = '[[source]]\nname = "docs"\nuri = "docs"\n'
PRIVATE = '[[source]]\nname = "private"\nuri = "docs/private"\nvisibility = "individual"\nuser_id = "ada"\n'
PAY = '[[source]]\nname = "pay"\nuri = "docs/pay.md"\nnamespace = "hr"\nvisibility = "individual"\nuser_id = "ada"\n'
FILES = ("a.md", "b.md", "pay.md", "private/c.md", "private/deep/d.md", "privateer/e.md")


class House:
    """A folder with settings, documents and a corpus."""

    def __init__(self, root):
        self.root = root
        for path in FILES:
            self.write(path)

    def write(self, path, text=None):
        file = self.root / "docs" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text or f"The veneer of {path} is made of oak.")

    def say(self, *tables):
        (self.root / "parquetry.toml").write_text(HEAD + "".join(tables))

    def request(self, *targets, **options):
        settings = load_settings(self.root / "parquetry.toml")
        return Request(settings, tuple(str(self.root / each) if "/" in each else each for each in targets), **options)

    def refresh(self, *targets, **options):
        return run_refresh(self.request(*targets, **options), DirectEngine(), Observer())

    def plan(self, *targets, **options):
        return plan_only(self.request(*targets, **options))

    @property
    def rows(self):
        return current_rows(Lake(str(self.root / "corpus")).snapshot())

    @property
    def places(self):
        """URIs from `docs/` on, of all published documents; a document published twice is listed twice."""
        return sorted(row.uri.partition("/docs/")[2] for row in self.rows)

    def of(self, source):
        """Return the paths of the published documents of a source."""
        named = source if "://" not in source else source.replace("HOUSE", self.root.as_uri())
        return sorted(row.path for row in self.rows if row.source == named)

    def seen_by(self, user):
        reader = Reader(load_settings(self.root / "parquetry.toml"))
        filters = Filters(caller=Caller(user))
        hits = reader.search(SearchRequest("veneer oak", "text", 50, filters=filters)).hits
        reader.close()
        return sorted(hit.row["uri"].partition("/docs/")[2] for hit in hits)


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


# --- configured sources


@pytest.mark.parametrize("tables", [(DOCS, PRIVATE, PAY), (PAY, PRIVATE, DOCS)], ids=["outer-first", "inner-first"])
def test_inner_source_has_its_documents_and_the_outer_says_so(house, tables):
    house.say(*tables)
    line = "source docs leaves 2 documents to source private (private), 1 document to source pay (pay.md)"
    assert house.plan().left_out == (line,)
    report = house.refresh()
    assert (report.documents.added, report.left_out) == (6, (line,))
    assert line in report.as_json()["warnings"]
    assert house.places == sorted(FILES)
    assert house.of("docs") == ["a.md", "b.md", "privateer/e.md"]
    assert (house.of("private"), house.of("pay")) == (["c.md", "deep/d.md"], ["pay.md"])
    assert house.seen_by("eve") == ["a.md", "b.md", "privateer/e.md"]
    assert house.refresh().documents.unchanged == 6


def test_documents_change_hands_when_an_inner_source_is_named(house):
    """Five of six documents leave at once; no removal guard stops them, and nothing is embedded again."""
    house.say(DOCS)
    house.refresh()
    assert house.seen_by("eve") == sorted(FILES)
    house.say("[refresh]\nmax_removed_documents = 0\nmax_removed_share = 0.0\n", DOCS, PRIVATE, PAY)
    report = house.refresh()
    assert (report.refused, report.documents.removed, report.documents.added) == ((), 3, 3)
    assert report.documents.unchanged == 3
    assert house.places == sorted(FILES)
    assert house.seen_by("eve") == ["a.md", "b.md", "privateer/e.md"]
    assert house.seen_by("ada") == sorted(FILES)


def test_what_is_private_now_is_hidden_even_if_the_rest_of_the_outer_source_is_held_back(house):
    house.say(DOCS)
    house.refresh()
    house.say(DOCS, PRIVATE, PAY)
    for path in ("a.md", "b.md", "privateer/e.md"):
        (house.root / "docs" / path).unlink()
    report = house.refresh("docs")
    assert len(report.refused) == 1
    assert house.places == ["a.md", "b.md", "privateer/e.md"]
    assert house.plan("docs").sources[0].handed_over == ()


def test_what_cannot_be_seen_of_an_inner_source_is_no_matter_of_the_outer_one(house):
    house.say(DOCS, PRIVATE)
    house.refresh()
    (house.root / "docs" / "private" / ".parquetry.toml").write_text("visibility = ")
    (house.root / "docs" / "b.md").unlink()
    report = house.refresh("docs")
    assert (report.documents.removed, [failure.uri for failure in report.failures]) == (1, [])


def test_link_into_an_inner_source_shows_nothing(house):
    (house.root / "docs/open.md").symlink_to(house.root / "docs/private/c.md")
    house.say(DOCS, PRIVATE)
    house.refresh()
    assert house.seen_by("eve") == ["a.md", "b.md", "pay.md", "privateer/e.md"]


def test_source_that_holds_nothing_but_others_is_not_called_empty(house):
    house.say('[[source]]\nname = "all"\nuri = "."\ninclude = ["docs/"]\n', DOCS)
    report = house.refresh()
    assert (report.empty, report.documents.scanned) == ((), 6)
    assert report.left_out == ("source all leaves 6 documents to source docs (docs)",)


def test_chats_within_documents_are_no_documents(house):
    house.say(DOCS, PRIVATE.replace('name = "private"', 'name = "private"\ncontent = "sessions"'))
    house.refresh()
    assert house.places == ["a.md", "b.md", "pay.md", "privateer/e.md"]


@pytest.mark.parametrize("second", ['include = ["*.md"]\n', ""])
def test_equal_places_are_refused_with_the_line_to_change(house, second):
    first = DOCS + 'include = ["*.md"]\n'
    house.say(first, f'# the same\n[[source]]\nname = "more"\nuri = "./docs/."\n{second}')
    with pytest.raises(SettingsError, match=r"toml, line 12: source more has the place of source docs \(line 7\)"):
        house.request()


def test_equal_places_may_share_their_documents_by_globs_and_the_first_wins(house):
    house.say(
        DOCS + 'include = ["private/"]\n',
        '[[source]]\nname = "rest"\nuri = "docs"\nnamespace = "hr"\ninclude = ["*.md"]\nexclude = ["b.md"]\n',
    )
    report = house.refresh()
    assert report.left_out == ("source rest leaves 2 documents to source docs",)
    assert house.of("docs") == ["private/c.md", "private/deep/d.md"]
    assert house.of("rest") == ["a.md", "pay.md", "privateer/e.md"]


# --- targets


def test_folder_refreshed_after_one_within_it_leaves_that_alone(house):
    house.say()
    house.refresh("docs/private")
    report = house.refresh("docs/")
    outer, inner = (house.root / "docs").as_uri(), (house.root / "docs/private").as_uri()
    assert report.left_out == (f"source {outer} leaves 2 documents to source {inner} (private)",)
    assert house.places == sorted(FILES)
    house.write("private/new.md")
    house.write("new.md")
    assert house.refresh("docs/").documents.added == 1
    assert house.refresh("docs/private").documents.added == 1
    assert house.places == sorted([*FILES, "new.md", "private/new.md"])
    assert house.of(inner) == ["c.md", "deep/d.md", "new.md"]


def test_folder_within_one_that_was_refreshed_is_a_part_of_that(house):
    house.say()
    house.refresh("docs/")
    house.write("private/new.md")
    (house.root / "docs/private/c.md").unlink()
    report = house.refresh("docs/private")
    assert (report.documents.added, report.documents.removed, report.documents.unchanged) == (1, 1, 1)
    assert {row.source for row in house.rows} == {(house.root / "docs").as_uri()}


@pytest.mark.parametrize("targets", [("docs/", "docs/private"), ("docs/private", "docs/"), ("docs/pay.md", "docs/")])
def test_folder_and_a_part_of_it_in_one_command_are_one_source(house, targets):
    house.say()
    assert house.refresh(*targets).documents.added == 6
    assert house.refresh(*targets).documents.unchanged == 6
    assert house.places == sorted(FILES)


def test_file_refreshed_alone_takes_nothing_else_of_its_folder_away(house):
    house.say()
    house.refresh("docs/private/c.md")
    assert house.refresh("docs/").documents.added == 5
    assert house.places == sorted(FILES)
    assert house.of((house.root / "docs/private/c.md").as_uri()) == ["c.md"]


def test_folder_around_a_configured_source_leaves_that_alone(house):
    house.say(PRIVATE, PAY)
    house.refresh()
    assert house.refresh("docs/").documents.added == 3
    assert house.places == sorted(FILES)
    assert house.seen_by("eve") == ["a.md", "b.md", "privateer/e.md"]


def test_target_belongs_to_the_innermost_source(house):
    house.say(DOCS, PRIVATE, PAY)
    report = house.refresh("docs/private/deep")
    assert (report.documents.scanned, house.of("private")) == (1, ["deep/d.md"])
    assert house.refresh("docs/pay.md").documents.scanned == 1
    assert house.of("pay") == ["pay.md"]


@pytest.mark.parametrize(
    ("table", "options", "problem"),
    [
        (PAY, {"namespace": "default"}, "source pay belongs to namespace hr; leave out --namespace"),
        (
            PAY.replace("visibility", 'content = "sessions"\nvisibility'),
            {},
            "source pay holds sessions; run",
        ),
    ],
)
def test_target_of_a_source_that_is_not_meant_is_refused(house, table, options, problem):
    house.say(DOCS, table)
    with pytest.raises(SettingsError, match=problem):
        house.plan("docs/pay.md", **options)


# --- one file


def test_single_file_is_a_source(house):
    house.say(PAY)
    assert house.plan().sources[0].listed == 1
    (house.root / "docs/.parquetry.toml").write_text('tags = ["money"]')
    house.refresh()
    (row,) = house.rows
    assert (row.path, row.filename, row.access.tags) == ("pay.md", "pay.md", ("money",))
    house.write("pay.md", "The veneer of the pay is longer now.")
    assert house.refresh().documents.changed == 1
    (house.root / "docs/pay.md").unlink()
    with pytest.raises(SettingsError, match=r"docs/pay\.md does not exist"):
        house.refresh()
    assert len(house.rows) == 1


def test_single_archive_is_a_source_of_its_members(house):
    with zipfile.ZipFile(house.root / "box.zip", "w") as box:
        box.writestr("x/a.md", "In the box.")
    house.say('[[source]]\nname = "box"\nuri = "box.zip"\n')
    house.refresh()
    assert house.of("box") == ["box.zip!/x/a.md"]


def test_single_file_that_its_globs_leave_out_is_a_mistake(house):
    house.say(PAY + 'include = ["*.pdf"]\n')
    with pytest.raises(SettingsError, match=r"pay\.md is left out of source"):
        house.plan()
