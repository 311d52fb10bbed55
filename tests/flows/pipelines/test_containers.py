"""Archives, folders with owners and videos, from the source to the search result."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest

from parquetry.serving.search.citations import cite
from parquetry.sources.youtube import source as youtube
from parquetry.storage.search.filters import Caller, Filters
from tests.servers.youtube import Video, YouTube

pytestmark = pytest.mark.slow

OAK = "The oak stands in hall two and is dried for nine weeks."
ASH = "The ash is delivered on Mondays."


def zipped(**members: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(f"{name}.txt", text)
    return target.getvalue()


def tarred(**members: str) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(f"{name}.txt")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return target.getvalue()


# --- compressed files


def test_compressed_file_is_the_document_in_it(workshop):
    workshop.write("oak.txt.gz", gzip.compress(OAK.encode()))
    report = workshop.refresh()
    assert (report.documents.added, report.documents.failed, report.documents.skipped) == (1, 0, 0)
    (first, *_) = workshop.search("how long is oak dried", mode="text").hits
    assert (first.row["filename"], first.row["media_type"]) == ("oak.txt.gz", "text/plain")
    assert workshop.refresh().documents.unchanged == 1
    workshop.write("oak.txt.gz", gzip.compress(ASH.encode()))
    assert workshop.refresh().documents.changed == 1
    assert not workshop.search("oak", mode="text").hits


# --- archives


@pytest.mark.parametrize(("name", "pack"), [("box.zip", zipped), ("box.tar.gz", tarred)])
def test_members_are_found_changed_and_removed_one_by_one(workshop, name, pack):
    workshop.write(name, pack(oak=OAK, ash=ASH))
    report = workshop.refresh()
    assert (report.documents.added, report.documents.failed) == (2, 0)
    (first, *_) = workshop.search("how long is oak dried", mode="text").hits
    assert first.row["uri"] == f"{(workshop.folder / name).as_uri()}!/oak.txt"
    assert first.row["filename"] == "oak.txt"

    again = workshop.refresh()
    assert (again.documents.unchanged, again.work.bytes_read) == (2, 0)

    workshop.write(name, pack(oak=OAK, elm="The elm is sold."))
    changed = workshop.refresh()
    assert (changed.documents.added, changed.documents.removed, changed.documents.unchanged) == (1, 1, 1)
    assert changed.work.chunks_embedded == 1
    assert set(workshop.rows()) == {f"{name}!/oak.txt", f"{name}!/elm.txt"}


def test_part_of_a_source_may_be_one_archive(workshop):
    workshop.write("box.zip", zipped(oak=OAK))
    workshop.write("other.txt", ASH)
    workshop.refresh()
    report = workshop.refresh(targets=(str(workshop.folder / "box.zip"),))
    assert (report.documents.scanned, report.documents.unchanged) == (1, 1)


def test_file_that_is_packed_keeps_its_vectors(workshop):
    workshop.write("oak.txt", OAK)
    workshop.refresh()
    (workshop.folder / "oak.txt").unlink()
    workshop.write("box.zip", zipped(oak=OAK))
    report = workshop.refresh()
    assert (report.documents.moved, report.work.chunks_embedded) == (1, 0)
    assert set(workshop.rows()) == {"box.zip!/oak.txt"}


@pytest.mark.parametrize("damage", [lambda whole: whole[: len(whole) // 2], lambda whole: b"", lambda whole: b"no zip"])
def test_archive_that_cannot_be_opened_loses_nothing_and_is_told(workshop, damage):
    whole = zipped(oak=OAK, ash=ASH)
    workshop.write("box.zip", whole)
    workshop.refresh()
    workshop.write("box.zip", damage(whole))
    report = workshop.refresh()
    assert (report.documents.removed, report.documents.failed) == (0, 1)
    assert {"damaged"} <= {failure.reason for failure in report.failures}
    assert workshop.search("how long is oak dried", mode="text").hits
    workshop.write("box.zip", whole)
    mended = workshop.refresh()
    assert (mended.documents.failed, mended.documents.unchanged) == (0, 2)
    assert set(workshop.rows()) == {"box.zip!/oak.txt", "box.zip!/ash.txt"}


def test_hostile_members_are_counted_by_reason(workshop):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("../../up.txt", "up")
        archive.writestr("oak.txt", OAK)
    workshop.write("box.zip", target.getvalue())
    report = workshop.refresh()
    assert [(failure.stage, failure.reason) for failure in report.failures] == [("fetch", "unsafe-name")]
    assert (report.documents.added, report.documents.failed) == (1, 1)
    assert not (workshop.folder.parent / "up.txt").exists()


# --- owners of folders


def who_finds(workshop, query, user):
    hits = workshop.search(query, mode="text", filters=Filters(caller=Caller(user))).hits
    return [hit.row["filename"] for hit in hits]


def test_owner_of_a_folder_changes_rows_and_embeds_nothing(workshop):
    workshop.write("hr/oak.txt", OAK)
    workshop.write("ash.txt", ASH)
    workshop.write("hr/box.zip", zipped(elm="The elm is dried as well."))
    workshop.refresh()
    assert who_finds(workshop, "oak", "eve") == ["oak.txt"]

    (workshop.folder / "hr" / ".parquetry.toml").write_text('visibility = "individual"\nuser_id = "ada"\n')
    report = workshop.refresh()
    assert (report.documents.permissions, report.documents.unchanged) == (2, 1)
    assert (report.work.chunks_written, report.work.bytes_read) == (0, 0)
    assert who_finds(workshop, "oak", "eve") == who_finds(workshop, "elm", "eve") == []
    assert who_finds(workshop, "oak", "ada") == ["oak.txt"]


def test_broken_word_on_a_folder_leaves_its_documents_as_private_as_they_were(workshop):
    owner = workshop.folder / "hr" / ".parquetry.toml"
    workshop.write("hr/oak.txt", OAK)
    owner.write_text('visibility = "individual"\nuser_id = "ada"\n')
    workshop.refresh()
    owner.write_text('visibility = "publik"\n')
    workshop.write("hr/ash.txt", ASH)
    report = workshop.refresh()
    assert (report.documents.added, report.documents.removed) == (0, 0)
    assert any("hr/.parquetry.toml: visibility" in failure.detail for failure in report.failures)
    assert who_finds(workshop, "oak", "eve") == []
    assert who_finds(workshop, "oak", "ada") == ["oak.txt"]


def test_folders_of_agents_belong_to_them(workshop):
    workshop.sections["source"] = {"options": {"access": "agents"}}
    workshop.write("shared/oak.txt", OAK)
    workshop.write("ada/ash.txt", ASH)
    workshop.refresh()
    assert (who_finds(workshop, "oak", "eve"), who_finds(workshop, "ash", "eve")) == (["oak.txt"], [])
    assert who_finds(workshop, "ash", "ada") == ["ash.txt"]
    (workshop.folder / "ada" / "ash.txt").rename(workshop.folder / "shared" / "ash.txt")
    report = workshop.refresh()
    assert (report.documents.moved, report.work.chunks_embedded) == (1, 0)
    assert who_finds(workshop, "ash", "eve") == ["ash.txt"]


# --- videos


def test_video_is_answered_with_the_moment_and_stays_when_youtube_refuses(workshop, monkeypatch):
    video = "kiln_dries-"
    cues = [(second * 10.0, f"Sentence {second} is about timber.") for second in range(40)]
    cues[25] = (250.0, "Veneer is pressed at ninety degrees.")
    with YouTube() as site:
        monkeypatch.setattr(youtube, "new_session", site.session)
        site.videos[video] = Video(tracks={"en": cues})
        workshop.sections["source"] = {"uri": f"https://youtu.be/{video}"}
        assert workshop.refresh().documents.added == 1
        hits = workshop.search("at how many degrees is veneer pressed").hits
        citation = cite("at how many degrees is veneer pressed", hits, "english").citations[0]
        assert citation.snippet == "Veneer is pressed at ninety degrees."
        assert citation.uri == f"https://www.youtube.com/watch?v={video}&t=240s"

        again = workshop.refresh()
        assert (again.documents.unchanged, again.work.chunks_written) == (1, 0)

        site.answers["/watch"] = (429, "")
        refused = workshop.refresh()
        assert refused.documents.removed == 0
        assert any("YouTube refuses requests" in failure.detail for failure in refused.failures)
        assert workshop.search("veneer pressed").hits
        site.answers.clear()

        site.videos[video].tracks = {}
        silent = workshop.refresh()
        assert [failure.reason for failure in silent.failures] == ["no-captions"]
        assert workshop.search("veneer pressed").hits, "the last good captions stay"
