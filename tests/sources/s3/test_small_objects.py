"""Small objects are read with obstore, and are what s3fs reads."""

from __future__ import annotations

import gzip
import json
import logging
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier
from time import sleep

import pytest
from botocore.credentials import ReadOnlyCredentials

from parquetry.errors import TransientError
from parquetry.masking import masked
from parquetry.sources.base import Place
from parquetry.sources.s3 import small as module
from parquetry.sources.s3.read import Read
from parquetry.sources.s3.reading import ObjectReader
from parquetry.sources.s3.small import SMALL_BYTES, SmallObjects
from parquetry.sources.s3.source import S3Source, open_s3
from tests.servers.certificates import certificate_for
from tests.servers.listing_server import BUCKET, ListingServer, Reply

OBJECT = Reply("text of the page", headers={"ETag": '"one"', "Last-Modified": "Tue, 06 May 2031 07:08:09 GMT"})
DEAD = "http://127.0.0.1:9"


@pytest.fixture
def signed_in(s3_server, monkeypatch):
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture
def bucket(signed_in):
    return signed_in.bucket()


def counted(source: S3Source) -> list[str]:
    """Return a list that gets the key of each object that is read through s3fs."""
    keys, slow = [], source._reader._through_s3fs

    def through_s3fs(key, size):
        keys.append(key)
        return slow(key, size)

    source._reader._through_s3fs = through_s3fs
    return keys


def source_of(bucket: str, **options) -> S3Source:
    return open_s3(Place("docs", f"s3://{bucket}", options=options))


def read(source: S3Source, key: str = "page.txt", size: int = 16) -> Read:
    return source._reader.read(key, size)


@pytest.mark.parametrize(
    ("content", "more"),
    [
        (b"text of the page", {}),
        (b"", {}),
        (gzip.compress(b"text of the page"), {"ContentEncoding": "gzip", "ContentType": "text/plain"}),
        (bytes(SMALL_BYTES), {}),
    ],
    ids=["text", "nothing", "gzip", "the largest"],
)
def test_what_is_read_is_the_same_in_every_respect(signed_in, bucket, content, more):
    signed_in.client().put_object(Bucket=bucket, Key="page.txt", Body=content, **more)
    source = source_of(bucket)
    through_s3fs = counted(source)
    found = read(source, size=len(content))
    assert not through_s3fs
    assert found.content == content
    assert found == ObjectReader(bucket, {}).read("page.txt", len(content))


def test_object_that_has_grown_is_left_to_s3fs_before_its_content_is_read(caplog):
    with ListingServer() as server:
        server.answer = lambda query: replace(OBJECT, body="x" * (SMALL_BYTES + 1))
        source = source_of(BUCKET, endpoint_url=server.url, region="us-east-1", anonymous=True)
        through_s3fs = counted(source)
        for _ in range(5):
            assert source._reader._small._get("page.txt") is None
            assert len(read(source).content) == SMALL_BYTES + 1
    assert len(through_s3fs) == 5
    assert not caplog.text


def test_what_a_server_says_is_cut(caplog):
    def refuse():
        raise ValueError("x" * 1000)

    small = SmallObjects("bucket", refuse)
    for _ in range(5):
        small.read("page.txt", 1, lambda: Read(b"", '"one"', datetime.now(UTC)))
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("objects of s3://bucket are read by s3fs alone, more slowly: xxx")
    assert len(told) < 400


def test_larger_objects_are_read_through_s3fs(signed_in, bucket):
    signed_in.put(bucket, "page.txt", bytes(SMALL_BYTES + 1))
    source = source_of(bucket)
    through_s3fs = counted(source)
    assert read(source, size=SMALL_BYTES + 1).content == bytes(SMALL_BYTES + 1)
    assert through_s3fs == ["page.txt"]


@pytest.mark.parametrize(
    "key", ["/page.txt", "docs//page.txt", "docs/./page.txt", "docs/../page.txt", "docs/", "..", "a\x01b", "a\nb"]
)
def test_key_that_obstore_cannot_name_or_takes_for_another_is_left_to_s3fs(key):
    def never():
        raise AssertionError

    there = Read(b"", '"one"', datetime.now(UTC))
    assert SmallObjects("bucket", never).read(key, 1, lambda: there) is there


@pytest.mark.parametrize("key", ["a b.txt", "ä%20#?&+=.txt", "'\"<[{*~^|`\\,;:.txt", "nai\u0308ve 😀.txt", "... /a"])
def test_odd_keys_are_read_by_it(signed_in, bucket, key):
    signed_in.put(bucket, key, "text of the page")
    source = source_of(bucket)
    through_s3fs = counted(source)
    assert read(source, key).content == b"text of the page"
    assert not through_s3fs


def test_what_fails_again_and_again_is_left_to_s3fs_and_told_once(signed_in, bucket, caplog):
    signed_in.put(bucket, "page.txt", "text of the page")
    source = source_of(bucket)
    small, store = source._reader._small, source._store()
    through_s3fs = counted(source)
    dead = open_s3(Place("docs", f"s3://{bucket}", options={"endpoint_url": DEAD}))._store()
    with caplog.at_level(logging.WARNING):
        for each in (dead, dead, store, dead, dead):
            small._store = each
            assert read(source).content == b"text of the page"
        assert (len(through_s3fs), caplog.text) == (4, "")
        for _ in range(5):
            assert read(source).content == b"text of the page"
        small._store = store
        assert read(source).content == b"text of the page"
    assert len(through_s3fs) == 10
    (told,) = [record.message for record in caplog.records]
    assert told.startswith(f"objects of s3://{bucket} are read by s3fs alone, more slowly: ")
    assert DEAD in told
    assert signed_in.secret_key not in told


def test_object_that_is_gone_is_told_by_s3fs_and_is_no_fault_of_obstores(signed_in, bucket, caplog):
    signed_in.put(bucket, "page.txt", "text of the page")
    source = source_of(bucket)
    through_s3fs = counted(source)
    for _ in range(5):
        with pytest.raises(FileNotFoundError):
            read(source, "gone.txt")
    assert read(source).content == b"text of the page"
    assert len(through_s3fs) == 5
    assert not caplog.text


def test_variables_of_the_environment_lead_nobody_astray(signed_in, bucket, monkeypatch):
    """Those that only obstore knows, and those that an option of the source replaces."""
    signed_in.put(bucket, "page.txt", "text of the page")
    source = source_of(
        bucket,
        endpoint_url=signed_in.endpoint,
        access_key_id=signed_in.access_key,
        secret_access_key=signed_in.secret_key,
    )
    for name, value in {
        "AWS_ENDPOINT_URL": DEAD,
        "AWS_ENDPOINT_URL_S3": DEAD,
        "AWS_ENDPOINT": DEAD,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "else",
        "AWS_SESSION_TOKEN": "third",
        "AWS_SKIP_SIGNATURE": "true",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true",
        "AWS_BUCKET": "other",
        "AWS_REGION": "eu-central-1",
    }.items():
        monkeypatch.setenv(name, value)
    through_s3fs = counted(source)
    assert read(source).content == b"text of the page"
    assert not through_s3fs


class Renewed:
    """Credentials of botocore that are others each time they are asked for."""

    def __init__(self, server):
        self._server, self.times = server, 0

    def get_frozen_credentials(self):
        self.times += 1
        return ReadOnlyCredentials(self._server.access_key, self._server.secret_key, None)


def test_threads_that_begin_together_open_one_store(signed_in, bucket):
    signed_in.put(bucket, "page.txt", "text of the page")
    source, opened, begin = source_of(bucket), [], Barrier(8)

    def open_slowly():
        opened.append(source._store())
        sleep(0.1)
        return opened[-1]

    def read_it(_):
        begin.wait(60)
        return small.read("page.txt", 16, pytest.fail).content

    small = SmallObjects(bucket, open_slowly)
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(read_it, range(8))) == {b"text of the page"}
    assert len(opened) == 1


class New:
    """Credentials of botocore that nobody has seen yet."""

    def get_frozen_credentials(self):
        return ReadOnlyCredentials("owner", "a-secret-of-2031", "a-token-of-2031")


def test_renewed_credentials_are_masked_from_then_on():
    both = "a-secret-of-2031 a-token-of-2031"
    assert masked(both) == both
    assert module._Credentials(New())()["token"] == "a-token-of-2031"
    assert masked(both) == "*** ***"


@pytest.mark.parametrize(("last", "times"), [(timedelta(minutes=10), 1), (timedelta(0), 3)])
def test_credentials_are_asked_for_again_when_botocore_may_have_new_ones(signed_in, bucket, monkeypatch, last, times):
    monkeypatch.setattr(module, "_CREDENTIALS_LAST", last)
    signed_in.put(bucket, "page.txt", "text of the page")
    renewed, source = Renewed(signed_in), source_of(bucket)
    source.__dict__["_credentials"] = renewed
    through_s3fs = counted(source)
    for _ in range(3):
        assert read(source).content == b"text of the page"
    assert (renewed.times, through_s3fs) == (times, [])


def test_credentials_of_a_program_in_the_profile_are_used(signed_in, bucket, monkeypatch, tmp_path):
    signed_in.put(bucket, "page.txt", "text of the page")
    program, config = tmp_path / "give.py", tmp_path / "config"
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    keys = {"AccessKeyId": signed_in.access_key, "SecretAccessKey": signed_in.secret_key}
    program.write_text(f"print({json.dumps({**keys, 'Version': 1, 'Expiration': soon})!r})")
    config.write_text(f"[profile kept]\ncredential_process = {sys.executable} {program}\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    source = source_of(bucket, profile="kept")
    through_s3fs = counted(source)
    assert read(source).content == b"text of the page"
    assert not through_s3fs


@pytest.mark.parametrize(
    ("options", "signed", "payer"),
    [
        ({"anonymous": True}, False, None),
        ({"access_key_id": "a", "secret_access_key": "b", "requester_pays": True}, True, "requester"),
        ({"access_key_id": "a", "secret_access_key": "b", "session_token": "c"}, True, None),
    ],
    ids=["anonymous", "requester pays", "temporary keys"],
)
def test_request_is_signed_and_paid_for_as_the_options_say(options, signed, payer):
    with ListingServer() as server:
        server.answer = lambda query: OBJECT
        source = source_of(BUCKET, endpoint_url=server.url, region="eu-central-1", **options)
        through_s3fs = counted(source)
        assert read(source) == Read(b"text of the page", '"one"', datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC))
        (headers,) = server.headers
    assert not through_s3fs
    assert headers.get("X-Amz-Request-Payer") == payer
    assert headers.get("X-Amz-Security-Token") == options.get("session_token")
    assert ("Authorization" in headers) == signed
    if signed:
        assert f"Credential={options['access_key_id']}/" in headers["Authorization"]
        assert "/eu-central-1/s3/" in headers["Authorization"]


@pytest.mark.parametrize("is_trusted", [True, False])
def test_authority_that_botocore_trusts_is_trusted(tmp_path, monkeypatch, is_trusted):
    certificate = certificate_for(tmp_path, "127.0.0.1")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate.server)
    config = tmp_path / "config"
    keys = "aws_access_key_id = a\naws_secret_access_key = b\n"
    config.write_text(f"[profile inside]\nca_bundle = {certificate.authority}\n{keys}[profile outside]\n{keys}")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    server = ListingServer()
    server._server.socket = tls.wrap_socket(server._server.socket, server_side=True)
    with server:
        server.answer = lambda query: OBJECT
        url = server.url.replace("http:", "https:")
        profile = "inside" if is_trusted else "outside"
        source = source_of(BUCKET, endpoint_url=url, region="us-east-1", profile=profile)
        through_s3fs = counted(source)
        if is_trusted:
            assert read(source).content == b"text of the page"
            assert not through_s3fs
        else:
            with pytest.raises(TransientError, match="CERTIFICATE_VERIFY_FAILED"):
                read(source)
