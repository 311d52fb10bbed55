"""All data about a user leaves every file of a corpus, and nothing else does."""

import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from parquetry.errors import PublishConflict, SettingsError
from parquetry.model import SESSION_TYPE, TRANSCRIPTS_TYPE, Access, Failure, Note
from parquetry.planning.rows import RunStamp
from parquetry.settings.sections import SearchSettings
from parquetry.storage.entries.entries import Learned
from parquetry.storage.files.filesystem import LocalFilesystem
from parquetry.storage.files.layout import shard_name
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake.answers import Answers
from parquetry.storage.lake.shards import write_notes
from parquetry.storage.maintenance import erasure
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.maintenance.erasure import forget_user
from tests.records import row
from tests.storage.notebook import Notebook, decision, entry, text_of
from tests.storage.shelf import Shelf
from tests.storage.telling import telling

pytestmark = pytest.mark.slow

USER = "ada-lovelace"
SECRET = "xylophonquartz"
"""word in everything that belongs to the user alone"""
ADA = Access("individual", user_id=USER)
TEAM = Access("organization", org_id="acme")
OTHERS = Access("individual", user_id="grace")
SHARED, OWN, OTHER = (
    entry("Cranes are oiled on Mondays.", TEAM),
    entry(f"Prefers {SECRET}.", ADA),
    entry("Prefers tea.", OTHERS),
)
LATER = RunStamp("20320101T000000-00000000", datetime(2032, 1, 1, tzinfo=UTC))


def forget(lake, settings):
    return forget_user(lake, USER, LATER, settings)


@pytest.fixture(params=["folder", "s3"])
def shelf(request, tmp_path, monkeypatch):
    """An empty corpus, in a folder or on an S3 server, with its index in the test's own folder."""
    root = tmp_path / "corpus"
    if request.param == "s3":
        server = request.getfixturevalue("s3_server")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        root = f"s3://{server.bucket()}/kb"
    made = Shelf(root)
    made.run_ids = "20310101T000000-{:08x}"
    # Segments of the index have texts, too.
    made.settings = SearchSettings(language="none", index_folder=str(tmp_path / "index"), segment_chunks=2)
    return made


def fill(shelf):
    """Publish documents, sessions, entries, decisions, failures and answers of three people."""
    shelf.publish({"crane.md": ["the crane", "is oiled"], "grace.md": ["tea of grace"]})
    shelf.publish({f"{SECRET}.md": [f"about {SECRET}", "and more"], "plan.md": [f"{SECRET} plan"]}, access=ADA)
    shelf.publish({"plan.md": [f"{SECRET} plan, second"]}, access=ADA)
    shelf.remove("plan.md")
    with shelf.index():
        pass
    book = Notebook(shelf)
    book.learn(OTHER, session="s-grace")
    session = row(f"{SECRET}.json", source="chats", access=replace(ADA, visibility="organization"), revision=0)
    sessions = [
        replace(session, media_type=SESSION_TYPE, title=SECRET, run_id="learn-2"),
        replace(session, media_type=TRANSCRIPTS_TYPE, document_id="file", run_id="learn-2"),
    ]
    mine = {"user_id": USER, "session_uri": f"file:///{SECRET}.json", "reasoning": f"because {SECRET}"}
    made = [
        replace(decision(0, entry=SHARED, run="learn-2"), text=f"{SECRET} draft", **mine),
        replace(decision(1, entry=OWN, run="learn-2"), **mine),
        replace(decision(2, "refused", run="learn-2"), text=SECRET, entry_id=None, access=TEAM, **mine),
    ]
    writer = book.writer()
    writer.publish(book.lake.snapshot(), Learned(made, [text_of(SHARED), text_of(OWN)], sessions))
    confirmed = replace(decision(0, "existing", SHARED, run="learn-3", session="s-2"), **mine)
    again = [replace(each, run_id="learn-3", metadata={"grown": 1}) for each in sessions]
    book.writer().publish(book.lake.snapshot(), Learned([confirmed], rows=again))
    # The entry itself does not change, so the publish has rows of the user alone.
    said_again = replace(confirmed, decision_id="again", run_id="learn-4")
    once_more = [replace(each, run_id="learn-4", metadata={"grown": 2}) for each in sessions]
    book.writer().publish(book.lake.snapshot(), Learned([said_again], rows=once_more))
    noted = [Note(each.revision, each.uri, "extract", f"worked around in {each.path}") for each in shelf.rows()]
    name = shard_name("20310101T000000-000000ff", 0)
    shelf.lake.register([write_notes(shelf.lake.layout, name, noted, LATER)], "noted")
    document = next(each for each in shelf.rows() if each.path == f"{SECRET}.md")
    failures = [
        Failure(each.document_id, "default", "docs", each.uri, "failed", "fetch", "gone", each.path, 1, "run")
        for each in (document, next(each for each in shelf.rows() if each.path == "crane.md"))
    ]
    runs = {"run_id": "run", "kind": "refresh", "status": "completed"}
    shelf.lake.record(runs, [*failures, replace(failures[0], document_id="", source="chats", uri=SECRET)])
    answers = Answers(shelf.lake.layout)
    answers.put(USER, "one", {"reply": SECRET})
    answers.put(None, "two", {"reply": "tea"})
    with shelf.index():
        pass
    return book


def copied(shelf, folder):
    """Return all files of a corpus and of its index, copied to a local folder."""
    layout = shelf.lake.layout
    shutil.copytree(shelf.settings.index_folder, folder / "index", dirs_exist_ok=True)
    if layout.is_local:
        shutil.copytree(layout.root, folder / "corpus", dirs_exist_ok=True)
        return folder
    from parquetry.storage.files.object_store import open_store

    open_store("s3")._filesystem.get(layout.root, str(folder / "corpus"), recursive=True)
    return folder


def rooms(found):
    """Return the top-level folders of a corpus that contain the files."""
    return {path.removeprefix("corpus/").partition("/")[0] for path in found}


def test_nothing_of_the_user_is_left_in_any_file_and_everything_else_is(shelf, tmp_path):
    book = fill(shelf)
    everywhere = {"documents", "texts", "chunks", "entries", "decisions", "failures", "notes", "index"}
    assert rooms(telling(copied(shelf, tmp_path / "before"), SECRET)) == {*everywhere, "answers"}
    done = forget(shelf.lake, shelf.settings)
    after = copied(shelf, tmp_path / "after")
    assert telling(after, SECRET) == set()
    assert telling(after, USER) == set()
    assert shelf.texts() == {"crane.md": ["the crane", "is oiled"], "grace.md": ["tea of grace"]}
    assert {hit for hit, _ in shelf.search("crane tea")} == {"the crane", "tea of grace"}
    assert book.live() == {SHARED.text: 2, OTHER.text: 1}
    assert book.ledger("kind, session_uri, session_user, text, evidence, entry_id") == [
        ("new", "file:///chats/s-grace.json", "grace", OTHER.text, ["m1"], OTHER.entry_id),
        ("new", None, None, "", [], SHARED.entry_id),
        ("existing", None, None, "", [], SHARED.entry_id),
        ("existing", None, None, "", [], SHARED.entry_id),
    ]
    assert Answers(shelf.lake.layout).get(None, "two") == {"reply": "tea"}
    assert done.rows == Counter(documents=11, texts=4, chunks=5, notes=1, entries=1, decisions=5, failures=2)
    assert (done.answers_deleted, done.files_left) == (1, 0)
    checkup = examine(shelf.lake, shelf.settings)
    assert checkup.healthy, checkup.findings
    with shelf.connect() as connection:
        notes = connection.execute("SELECT note FROM notes ORDER BY ALL").fetchall()
        assert notes == [("worked around in crane.md",), ("worked around in grace.md",)]
        runs = connection.execute("SELECT kind, namespaces FROM runs WHERE run_id = $1", [LATER.run_id]).fetchall()
    assert runs == [("forget", ["default"])]
    again = forget(shelf.lake, shelf.settings)
    assert (again.rows, again.files_rewritten, again.files_deleted, again.version) == ({}, 0, 0, done.version)


@pytest.fixture
def local(tmp_path):
    made = Shelf(tmp_path / "corpus")
    made.run_ids = "20310101T000000-{:08x}"
    # Segments of the index have texts, too.
    made.settings = SearchSettings(language="none", index_folder=str(tmp_path / "index"), segment_chunks=2)
    return made


class Dies(Exception):
    pass


def dying(real, steps):
    """Wrap a function so that it ends its program once there are no steps left."""

    def stepping(*arguments, **options):
        if next(steps, None) is None:
            raise Dies
        return real(*arguments, **options)

    return stepping


def test_what_crashes_again_and_again_is_finished_by_running_it_again(local, monkeypatch):
    """Every run completes one commit or one deletion."""
    local.settings = SearchSettings(language="none")
    local.publish({"crane.md": ["the crane"]})
    local.publish({"plan.md": [f"{SECRET} plan"]}, access=ADA)
    book = Notebook(local)
    book.run_ids = "20310102T000000-{:08x}"
    book.learn(SHARED, OWN)
    Answers(local.lake.layout).put(USER, "one", {"reply": SECRET})
    # The next test covers the index.
    monkeypatch.setattr(IndexFolder, "refresh", lambda *_: None)
    crashes = 0
    while True:
        steps = iter(range(1))
        with monkeypatch.context() as patch:
            for name in ("replace_files", "_record"):
                patch.setattr(erasure, name, dying(getattr(erasure, name), steps))
            patch.setattr(LocalFilesystem, "delete", dying(LocalFilesystem.delete, steps))
            with suppress(Dies):
                done = forget(local.lake, local.settings)
                break
        crashes += 1
    assert crashes > 10
    assert done.files_left == 0
    assert telling(local.root, SECRET) == set()
    assert local.texts() == {"crane.md": ["the crane"]}
    assert book.live() == {SHARED.text: 1}


def test_index_is_built_anew_though_the_run_that_erased_did_not_come_so_far(local, monkeypatch):
    local.publish({"plan.md": [SECRET]}, access=ADA)
    with local.index():
        pass
    with monkeypatch.context() as patch, suppress(Dies):
        patch.setattr(IndexFolder, "clear", dying(IndexFolder.clear, iter(())))
        forget(local.lake, local.settings)
    assert telling(Path(local.settings.index_folder), SECRET)
    forget(local.lake, local.settings)
    assert telling(Path(local.settings.index_folder), SECRET) == set()


def test_publish_of_others_meanwhile_is_kept_and_searched_too(local, monkeypatch):
    fill(local)
    real, published = erasure.replace_files, []

    def late(layout, table, *rest):
        if table == "documents" and len(published) < 2:
            published.append(local.publish({f"{len(published)}.md": [f"{SECRET} again"]}, access=ADA))
            published.append(local.publish({"elm.md": ["the elm"]}))
        return real(layout, table, *rest)

    monkeypatch.setattr(erasure, "replace_files", late)
    forget(local.lake, local.settings)
    assert sorted(local.texts()) == ["crane.md", "elm.md", "grace.md"]
    assert telling(local.root, SECRET) == set()
    assert local.search("elm")[0][0] == "the elm"


def test_publish_that_was_decided_on_before_is_a_conflict(local):
    """It may refer to texts that have been erased since."""
    local.publish({"a.md": ["the oak"]}, access=ADA)
    (known,), base = local.rows(), local.lake.snapshot()
    forget(local.lake, local.settings)
    with pytest.raises(PublishConflict):
        local.lake.publish(base, [replace(known, access=TEAM)], "late")


@pytest.mark.parametrize("table", ["documents", "chunks"])
def test_users_that_are_forgotten_at_a_time_take_nothing_from_each_other(local, monkeypatch, table):
    rows, run = local.write({"a.md": ["the oak"], "b.md": ["the elm"], "c.md": ["the ash"]})
    accesses = {"a.md": ADA, "b.md": OTHERS, "c.md": TEAM}
    local.lake.publish(local.lake.snapshot(), [replace(each, access=accesses[each.path]) for each in rows], run)
    real, begun = erasure.replace_files, []

    def late(layout, rewritten, *rest):
        if rewritten == table and not begun:
            begun.append(rewritten)
            forget_user(local.lake, "grace", replace(LATER, run_id="other"), local.settings)
        return real(layout, rewritten, *rest)

    monkeypatch.setattr(erasure, "replace_files", late)
    forget(local.lake, local.settings)
    assert local.texts() == {"c.md": ["the ash"]}
    with local.connect() as connection:
        assert connection.execute("SELECT text FROM all_chunks").fetchall() == [("the ash",)]


def test_file_that_another_run_is_about_to_name_is_not_taken_for_left_behind(local, monkeypatch):
    accesses = {"a.md": ADA, "c.md": TEAM}
    rows, run = local.write({"a.md": ["the oak"], "c.md": ["the ash"]})
    local.lake.publish(local.lake.snapshot(), [replace(each, access=accesses[each.path]) for each in rows], run)
    local.publish({"b.md": ["the elm"]}, access=OTHERS)
    real, begun = erasure.replace_files, []

    def late(*arguments):
        if not begun:
            begun.append(arguments)
            forget_user(local.lake, "grace", replace(LATER, run_id="other"), local.settings)
        return real(*arguments)

    monkeypatch.setattr(erasure, "replace_files", late)
    forget(local.lake, local.settings)
    assert local.texts() == {"c.md": ["the ash"]}
    assert examine(local.lake, local.settings).healthy


def test_who_keeps_publishing_is_told_of(local, monkeypatch):
    fill(local)

    def conflict(*_, **__):
        raise PublishConflict("meanwhile")

    monkeypatch.setattr(erasure, "replace_files", conflict)
    with pytest.raises(PublishConflict, match="run it again"):
        forget(local.lake, local.settings)


def test_text_that_is_shown_to_others_by_now_stays(local):
    local.publish({"a.md": ["the oak"]}, access=ADA)
    local.permit("a.md", TEAM)
    done = forget(local.lake, local.settings)
    assert (done.rows, local.texts()) == (Counter(documents=1), {"a.md": ["the oak"]})


def test_texts_of_a_run_that_may_be_going_on_are_left_and_told_of(local):
    now = datetime.now(UTC)
    local.run_ids = f"{now:%Y%m%dT%H%M%S}-{{:08x}}"
    local.publish({"a.md": ["the oak"]}, access=ADA)
    written, run = local.write({"b.md": ["the elm"]})
    local.write({"c.md": ["the ash"]}, register=False)
    done = forget_user(local.lake, USER, RunStamp(f"{now:%Y%m%dT%H%M%S}-ffffffff", now), local.settings)
    assert done.files_left == 2
    local.lake.publish(local.lake.snapshot(), written, run)
    assert local.texts() == {"b.md": ["the elm"]}
    assert len(local.lake.orphans(local.lake.snapshot())) == 1


def test_version_that_held_it_cannot_be_read_any_more_and_says_so(local):
    local.publish({"elm.md": ["the elm"]})
    local.publish({"a.md": ["the oak"]}, access=ADA)
    forget(local.lake, local.settings)
    assert local.texts(1) == {"elm.md": ["the elm"]}
    with pytest.raises(SettingsError, match=r"version 2 of corpus .* cannot be read any more: .* erased since"):
        local.lake.snapshot(2)
    assert local.texts() == {"elm.md": ["the elm"]}


def test_index_in_the_cache_of_another_machine_is_built_anew(local, tmp_path):
    local.publish({"elm.md": ["the elm"]})
    local.publish({"a.md": [SECRET]}, access=ADA)
    elsewhere = local.settings.model_copy(update={"index_folder": str(tmp_path / "cache")})
    folder = IndexFolder(local.lake.layout, elsewhere)
    folder.refresh(local.lake.snapshot())
    local.remove("a.md")
    folder.refresh(local.lake.snapshot())
    assert telling(tmp_path / "cache", SECRET)
    forget(local.lake, local.settings)
    folder.refresh(local.lake.snapshot())
    assert telling(tmp_path / "cache", SECRET) == set()
