"""A corpus built from a bucket, on a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parquetry.errors import SettingsError
from parquetry.storage.search.filters import Caller, Filters
from tests.servers.seaweed import S3Server
from tests.workshop import Workshop

TEXT = "The {} stands in the harbour and is oiled on the first Monday of every month."


class Bucket:
    """A bucket as the source of a corpus."""

    def __init__(self, server: S3Server, root: Path, options: dict[str, Any]) -> None:
        self.server, self.name = server, server.bucket()
        self.workshop = Workshop(root)
        self.workshop.sections["source"] = {"uri": f"s3://{self.name}/docs", "options": options}

    def put(self, key: str, thing: str, **options: Any) -> None:
        self.server.put(self.name, f"docs/{key}", TEXT.format(thing), **options)

    def delete(self, key: str) -> None:
        self.server.client().delete_object(Bucket=self.name, Key=f"docs/{key}")

    def refresh(self) -> tuple[dict[str, int], int, int]:
        """Return the outcome per document, the number of embedded chunks, and the number of requested objects."""
        before = self.server.requests()["GET"]
        report = self.workshop.refresh()
        counts = {name: count for name, count in report.documents.as_dict().items() if count}
        return counts, report.work.chunks_embedded, self.server.requests()["GET"] - before

    def found_by(self, user: str) -> set[str]:
        """Return the names of the documents that a user finds."""
        hits = self.workshop.search("harbour", filters=Filters(caller=Caller(user))).hits
        return {hit.row["filename"] for hit in hits}


@pytest.fixture
def bucket(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Bucket:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    made = Bucket(s3_server, tmp_path, getattr(request, "param", {}))
    for thing in ("crane", "ferry", "shed"):
        made.put(f"{thing}.txt", thing)
    return made


def test_an_unchanged_bucket_is_not_read_again(bucket: Bucket) -> None:
    assert bucket.refresh() == ({"scanned": 3, "added": 3}, 3, 3)
    assert bucket.refresh() == ({"scanned": 3, "unchanged": 3}, 0, 0)


def test_only_what_changed_is_read_and_embedded(bucket: Bucket) -> None:
    bucket.refresh()
    bucket.put("crane.txt", "old crane")
    bucket.put("boat.txt", "boat")
    bucket.delete("shed.txt")
    assert bucket.refresh() == ({"scanned": 3, "added": 1, "changed": 1, "unchanged": 1, "removed": 1}, 2, 2)
    assert sorted(bucket.workshop.rows()) == ["boat.txt", "crane.txt", "ferry.txt"]


def test_a_renamed_object_keeps_its_vectors(bucket: Bucket) -> None:
    bucket.refresh()
    bucket.delete("crane.txt")
    bucket.put("cranes/north.txt", "crane")
    counts, embedded, _ = bucket.refresh()
    assert (counts["scanned"], counts["removed"], embedded) == (3, 1, 0)
    assert sorted(bucket.workshop.rows()) == ["cranes/north.txt", "ferry.txt", "shed.txt"]


@pytest.mark.parametrize("bucket", [{"permissions": "tags"}], indirect=True, ids=["tags"])
def test_a_changed_tag_changes_who_finds_a_document_and_reads_nothing(bucket: Bucket) -> None:
    bucket.refresh()
    assert "crane.txt" in bucket.found_by("bob")
    tags = [{"Key": "visibility", "Value": "individual"}, {"Key": "user_id", "Value": "ada"}]
    bucket.server.client().put_object_tagging(Bucket=bucket.name, Key="docs/crane.txt", Tagging={"TagSet": tags})
    # Three requests for tags, none for content.
    assert bucket.refresh() == ({"scanned": 3, "permissions": 1, "unchanged": 2}, 0, 3)
    assert "crane.txt" not in bucket.found_by("bob")
    assert "crane.txt" in bucket.found_by("ada")


def test_a_listing_that_is_refused_leaves_every_document(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.refresh()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "expired")
    with pytest.raises(SettingsError):
        bucket.refresh()
    assert len(bucket.workshop.rows()) == 3


def test_a_server_that_is_gone_removes_nothing(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.refresh()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    bucket.workshop.sections["refresh"] = {"attempts": 1}
    counts, _, _ = bucket.refresh()
    assert counts.get("removed", 0) == 0
    assert len(bucket.workshop.rows()) == 3
