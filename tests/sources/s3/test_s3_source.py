"""A bucket as a source, on a real server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parquetry.errors import SettingsError, TransientError
from parquetry.model import Access, Item, Unlisted
from parquetry.sources.base import Place
from parquetry.sources.s3 import reading as s3_reading
from parquetry.sources.s3.reading import ObjectReader
from parquetry.sources.s3.source import S3Source, open_s3
from tests.servers.seaweed import S3Server

AWS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")


@pytest.fixture(autouse=True)
def signed_in(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)


def source(uri: str, access: Access | None = None, **options: Any) -> S3Source:
    return open_s3(Place("s3", uri, access or Access(), options=options))


def items(found: S3Source, prefix: str = "") -> dict[str, Item]:
    return {each.path: each for each in found.scan(prefix) if isinstance(each, Item)}


HOSTILE = [
    "plain.txt",
    "with space.txt",
    "percent%20and%2Fmore.txt",
    "plus+and&and=and?and#.txt",
    "question?versionId=7.txt",
    "naïve-文書-😀.txt",
    "nai\u0308ve decomposed.txt",
    "quote'\"<tag>.txt",
    "dots../.../..file.txt",
    "star*[glob].txt",
    "~tilde:colon;semi,comma|pipe.txt",
    "deep/er/and/deep/er.txt",
    "control\x01\x1b[31m.txt",
    "new\nline.txt",
]


@pytest.mark.parametrize("folder", ["", "docs/"], ids=["whole bucket", "below a prefix"])
def test_an_object_with_any_key_is_listed_and_read(s3_server: S3Server, folder: str) -> None:
    bucket = s3_server.bucket()
    for key in HOSTILE:
        s3_server.put(bucket, folder + key, f"text of {key}")
    found = source(f"s3://{bucket}/{folder}")
    listed = items(found)
    assert sorted(listed) == sorted(HOSTILE)
    for key, item in listed.items():
        assert found.fetch(item) == (item, f"text of {key}".encode())
        assert item.uri.isprintable()


def test_folders_that_are_marked_by_empty_objects_are_not_documents(s3_server: S3Server) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "docs/", b"")
    s3_server.put(bucket, "docs/inner/", b"")
    s3_server.put(bucket, "docs/inner/page.txt", "text")
    assert list(items(source(f"s3://{bucket}/docs"))) == ["inner/page.txt"]


def test_an_empty_bucket_lists_nothing(s3_server: S3Server) -> None:
    assert list(source(f"s3://{s3_server.bucket()}").scan()) == []


def test_a_url_of_one_object_is_a_source_of_one_document(s3_server: S3Server) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "docs/page.txt", "text")
    s3_server.put(bucket, "docs/page.txt.bak", "other")
    found = source(f"s3://{bucket}/docs/page.txt")
    listed = items(found)
    assert list(listed) == ["page.txt"]
    assert found.fetch(listed["page.txt"])[1] == b"text"
    assert list(items(found, "page.txt")) == ["page.txt"]
    assert list(items(found, "other.txt")) == []


def test_the_change_token_follows_the_content(s3_server: S3Server) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "page.txt", "one")
    s3_server.put(bucket, "other.txt", "one")
    found = source(f"s3://{bucket}")
    before = items(found)
    assert items(found) == before
    s3_server.put(bucket, "page.txt", "two")
    after = items(found)
    assert after["page.txt"].etag != before["page.txt"].etag
    assert after["page.txt"].size == before["page.txt"].size
    assert after["other.txt"] == before["other.txt"]


def test_an_object_replaced_after_the_listing_is_returned_as_it_was_read(s3_server: S3Server) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "page.txt", "one")
    found = source(f"s3://{bucket}")
    listed = items(found)["page.txt"]
    s3_server.put(bucket, "page.txt", "and two")
    read, content = found.fetch(listed)
    assert content == b"and two"
    assert read == items(found)["page.txt"]
    assert read.etag != listed.etag


def test_an_object_deleted_after_the_listing_is_not_found(s3_server: S3Server) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "page.txt", "one")
    found = source(f"s3://{bucket}")
    listed = items(found)["page.txt"]
    s3_server.client().delete_object(Bucket=bucket, Key="page.txt")
    with pytest.raises(FileNotFoundError) as caught:
        found.fetch(listed)
    assert caught.value.filename == f"s3://{bucket}/page.txt"


def test_a_delete_marker_is_a_deletion(s3_server: S3Server) -> None:
    bucket = s3_server.bucket(versioned=True)
    s3_server.put(bucket, "kept.txt", "old")
    s3_server.put(bucket, "kept.txt", "new")
    s3_server.put(bucket, "gone.txt", "text")
    found = source(f"s3://{bucket}")
    listed = items(found)
    s3_server.client().delete_object(Bucket=bucket, Key="gone.txt")
    assert list(items(found)) == ["kept.txt"]
    assert found.fetch(items(found)["kept.txt"])[1] == b"new"
    with pytest.raises(FileNotFoundError):
        found.fetch(listed["gone.txt"])


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_reading, "PART", 1000)


BIG = bytes(number % 251 for number in range(9_500))


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("length", [2001, 3000, 9500], ids=["hardly large", "whole parts", "a part at the end"])
def test_a_large_object_read_by_ranges_is_whole(s3_server: S3Server, length: int) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "big.bin", BIG[:length])
    found = source(f"s3://{bucket}")
    listed = items(found)["big.bin"]
    assert found.fetch(listed) == (listed, BIG[:length])


class Overtaken(ObjectReader):
    """A reader for which `content` replaces the object after the first range was read."""

    def __init__(self, server: S3Server, bucket: str, content: bytes) -> None:
        super().__init__(bucket, {})
        self.server, self.content, self.ranges = server, content, 0

    async def _get(self, key: str, **request: str) -> Any:
        answer = await super()._get(key, **request)
        if "Range" in request:
            self.ranges += 1
            if self.ranges == 1:
                self.server.put(self._bucket, key, self.content)
        return answer


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("new", [BIG[::-1], b"short", b""], ids=["same size", "shorter", "empty"])
def test_a_large_object_replaced_while_read_is_never_a_mixture(s3_server: S3Server, new: bytes) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "big.bin", BIG)
    reader = Overtaken(s3_server, bucket, new)
    assert reader.read("big.bin", len(BIG)).content == new
    assert reader.ranges >= 1


@pytest.mark.usefixtures("small_parts")
def test_a_large_object_of_a_versioned_bucket_is_read_as_it_was_at_its_first_range(s3_server: S3Server) -> None:
    bucket = s3_server.bucket(versioned=True)
    s3_server.put(bucket, "big.bin", BIG)
    reader = Overtaken(s3_server, bucket, BIG[::-1])
    assert reader.read("big.bin", len(BIG)).content == BIG
    assert reader.ranges == 10


def test_a_bucket_that_does_not_exist_stops_with_what_to_do(s3_server: S3Server) -> None:
    with pytest.raises(SettingsError, match="s3://no-such-bucket/docs/: there is no such bucket; correct the uri"):
        items(source("s3://no-such-bucket/docs"))


def test_a_url_without_a_bucket_is_refused() -> None:
    with pytest.raises(SettingsError, match="names no bucket"):
        source("s3://")


def test_unknown_options_are_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="endpoint_url"):
        source("s3://bucket", endpoint="http://127.0.0.1")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"AWS_ACCESS_KEY_ID": "nobody"}, "does not know the access key"),
        ({"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, "the secret key is wrong"),
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "no credentials found; set AWS_ACCESS_KEY_ID"),
        ({"AWS_PROFILE": "missing"}, "missing"),
        ({"AWS_ENDPOINT_URL": "no url"}, "no url"),
    ],
    ids=["unknown key", "wrong secret", "no credentials", "no such profile", "no endpoint"],
)
def test_wrong_credentials_stop_the_scan_and_are_not_shown(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str | None], told: str
) -> None:
    bucket = s3_server.bucket()
    for name, value in changes.items():
        if value is None:
            monkeypatch.delenv(name)
        else:
            monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=told) as caught:
        items(source(f"s3://{bucket}"))
    assert "secret" not in str(caught.value).replace("secret key", "").replace("AWS_SECRET_ACCESS_KEY", "")


def test_a_server_that_does_not_answer_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(TransientError, match="unreachable"):
        items(source("s3://bucket"))


def test_an_object_that_may_not_be_read_concerns_only_itself(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "page.txt", "text")
    for name, value in s3_server.environment(s3_server.lister).items():
        monkeypatch.setenv(name, value)
    found = source(f"s3://{bucket}")
    listed = items(found)["page.txt"]
    with pytest.raises(PermissionError) as caught:
        found.fetch(listed)
    assert caught.value.filename == listed.uri


def test_a_public_bucket_needs_no_credentials(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = s3_server.bucket("open")
    s3_server.put(bucket, "page.txt", "text")
    closed = s3_server.bucket("closed")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    found = source(f"s3://{bucket}", anonymous=True)
    assert found.fetch(items(found)["page.txt"])[1] == b"text"
    with pytest.raises(SettingsError, match="may not be listed"):
        items(source(f"s3://{closed}", anonymous=True))


def test_a_profile_brings_server_and_credentials(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "page.txt", "text")
    for name in AWS:
        monkeypatch.delenv(name)
    (tmp_path / "config").write_text(
        f"[profile backup]\nregion = us-east-1\nendpoint_url = {s3_server.endpoint}\n"
        f"aws_access_key_id = {s3_server.access_key}\naws_secret_access_key = {s3_server.secret_key}\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    found = source(f"s3://{bucket}", profile="backup")
    assert found.fetch(items(found)["page.txt"])[1] == b"text"


def test_the_options_name_a_server_apart_from_the_environment(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "page.txt", "text")
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    found = source(f"s3://{bucket}", endpoint_url=s3_server.endpoint, region="us-east-1", requester_pays=True)
    assert found.fetch(items(found)["page.txt"])[1] == b"text"


STAFF = Access("organization", "acme", None, ("policy",))


def test_tags_say_who_may_see_an_object(s3_server: S3Server) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "plain.txt", "text")
    s3_server.put(bucket, "own.txt", "text", Tagging="visibility=individual&user_id=ada&tags=draft%20private&other=1")
    listed = items(source(f"s3://{bucket}", STAFF, permissions="tags"))
    assert listed["plain.txt"].access == STAFF
    assert listed["own.txt"].access == Access("individual", "acme", "ada", ("draft", "private"))


def test_metadata_says_who_may_see_an_object(s3_server: S3Server) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "page.txt", "text", Metadata={"visibility": "organization", "org-id": "acme"})
    found = source(f"s3://{bucket}", permissions="metadata")
    assert items(found)["page.txt"].access == Access("organization", "acme")
    assert items(source(f"s3://{bucket}"))["page.txt"].access == Access()


def test_changed_tags_change_nothing_but_who_may_see_it(s3_server: S3Server) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "page.txt", "text")
    found = source(f"s3://{bucket}", permissions="tags")
    before = items(found)["page.txt"]
    tags = {"TagSet": [{"Key": "visibility", "Value": "individual"}, {"Key": "user_id", "Value": "ada"}]}
    s3_server.client().put_object_tagging(Bucket=bucket, Key="page.txt", Tagging=tags)
    assert items(found)["page.txt"] == replace(before, access=Access("individual", None, "ada"))


@pytest.mark.parametrize("wrong", ["visibility=internal", "visibility=individual", "visibility=organization"])
def test_tags_that_make_no_sense_show_the_object_to_nobody(s3_server: S3Server, wrong: str) -> None:
    """Invalid tags must neither publish a document nor remove a published one."""
    bucket = s3_server.bucket()
    s3_server.put(bucket, "page.txt", "text", Tagging=wrong)
    s3_server.put(bucket, "other.txt", "text")
    found = list(source(f"s3://{bucket}", permissions="tags").scan())
    assert [each.path for each in found if isinstance(each, Item)] == ["other.txt"]
    unlisted = [each for each in found if isinstance(each, Unlisted)]
    assert [each.path for each in unlisted] == ["page.txt"]
    assert "visibility" in unlisted[0].detail


def test_an_object_whose_tags_may_not_be_read_is_told(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = s3_server.bucket()
    s3_server.put(bucket, "page.txt", "text")
    for name, value in s3_server.environment(s3_server.lister).items():
        monkeypatch.setenv(name, value)
    found = list(source(f"s3://{bucket}", permissions="tags").scan())
    assert [type(each) for each in found] == [Unlisted]
