"""Archives of 7-Zip are folders like others; a process of its own reads each, under limits."""

import io
import os
import random
import struct
import subprocess
import zlib

import py7zr
import pytest

from parquetry.errors import DocumentError
from parquetry.extract.registry import extract
from parquetry.model import Item, RawDocument, Unlisted
from parquetry.settings.sections import ExtractionSettings
from parquetry.sources.archive import members as limits
from parquetry.sources.archive import seven_zip, seven_zip_frames
from tests.sources.packed import TEXTS, local, read, remote, unlisted, zipped

pytestmark = pytest.mark.slow

LZMA2 = [{"id": py7zr.FILTER_LZMA2, "preset": 1}]
PPMD = [{"id": py7zr.FILTER_PPMD, "order": 6, "mem": 24}]


def packed(members, **options):
    target = io.BytesIO()
    with py7zr.SevenZipFile(target, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(content, name)
    return target.getvalue()


def with_header(members, change, filters=LZMA2):
    """Return an archive whose header, written plainly, was changed; its checksums are right."""
    target = io.BytesIO()
    with py7zr.SevenZipFile(target, "w", filters=filters) as archive:
        archive.set_encoded_header_mode(False)
        for name, content in members.items():
            archive.writestr(content, name)
    content = target.getvalue()
    offset, size = struct.unpack_from("<QQ", content, 12)
    header = change(content[32 + offset : 32 + offset + size])
    start = struct.pack("<QQI", offset, len(header), zlib.crc32(header))
    return content[:8] + struct.pack("<I", zlib.crc32(start)) + start + content[32 : 32 + offset] + header


def test_members_are_documents_whatever_packs_them_and_wherever_the_archive_is(tmp_path):
    texts = {**TEXTS, "empty.md": b""}
    (tmp_path / "a.7z").write_bytes(packed(texts, filters=LZMA2))
    (tmp_path / "b.7Z").write_bytes(packed(texts, filters=PPMD))
    (tmp_path / "outer.zip").write_bytes(zipped({"inner.7z": packed({"b.md": b"b", "c.zip": zipped({"d.md": b"d"})})}))
    here = local(tmp_path)
    expected = {f"{archive}!/{name}": content for archive in ("a.7z", "b.7Z") for name, content in texts.items()}
    assert read(here) == {
        **expected,
        "outer.zip!/inner.7z!/b.md": b"b",
        "outer.zip!/inner.7z!/c.zip": "nested-too-deep",
    }
    assert list(here.scan("")) == list(local(tmp_path).scan(""))
    (item,) = (found for found in here.scan("a.7z!/sub") if isinstance(found, Item))
    assert (item.path, item.size) == ("a.7z!/sub/deep/oak.txt", 11)
    there = remote({"a.7z": packed(TEXTS)})
    assert len(read(there)) == 3
    assert there._source.fetched == ["a.7z"]


def test_names_that_lead_out_links_and_encrypted_members_are_refused_by_themselves(tmp_path):
    (tmp_path / "link.md").symlink_to("/etc/passwd")
    with py7zr.SevenZipFile(tmp_path / "a.7z", "w") as archive:
        archive.write(tmp_path / "link.md", "link.md")
        archive.writestr(b"good", "good.md")
    (tmp_path / "link.md").unlink()
    plain = with_header(
        {"good.md": b"good", "XX/up.md": b"evil", "C-/x.md": b"evil", "twin.md": b"1", "twim.md": b"2"},
        lambda header: (
            header.replace("XX/".encode("utf-16-le"), "../".encode("utf-16-le"))
            .replace("C-/".encode("utf-16-le"), "C:/".encode("utf-16-le"))
            .replace("twim".encode("utf-16-le"), "twin".encode("utf-16-le"))
        ),
    )
    (tmp_path / "b.7z").write_bytes(plain)
    (tmp_path / "c.7z").write_bytes(packed({"secret.md": b"secret"}, password="oak"))
    assert read(local(tmp_path)) == {
        "a.7z!/good.md": b"good",
        "a.7z!/link.md": "link",
        "b.7z!/good.md": b"good",
        "b.7z!/%2E%2E%2Fup.md": "unsafe-name",
        "b.7z!/C%3A%2Fx.md": "unsafe-name",
        "b.7z!/twin.md": "duplicate-name",
        "c.7z!/secret.md": "encrypted",
    }


def test_archives_that_cannot_be_opened_name_the_reason_and_hide_nothing(tmp_path):
    hidden = packed({"secret.md": b"secret"}, password="oak", header_encryption=True)
    whole = packed({f"{number}.txt": os.urandom(3000) for number in range(20)})
    (tmp_path / "hidden.7z").write_bytes(hidden)
    (tmp_path / "cut.7z").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.7z").write_bytes(b"")
    (tmp_path / "bomb.7z").write_bytes(packed({"zeros.txt": bytes(40 << 20)}))
    source = local(tmp_path)
    assert unlisted(source) == ["bomb.7z", "cut.7z", "empty.7z", "hidden.7z"]
    reasons = {}
    for item in source.scan(""):
        if isinstance(item, Item):
            with pytest.raises(DocumentError) as refused:
                source.fetch(item)
            reasons[item.path] = refused.value.reason
    assert reasons == {"bomb.7z": "too-large", "cut.7z": "damaged", "empty.7z": "damaged", "hidden.7z": "encrypted"}


def test_more_members_or_bytes_than_an_archive_may_have_are_refused(tmp_path, monkeypatch):
    (tmp_path / "a.7z").write_bytes(packed({f"{number}.md": b"x" for number in range(6)}))
    monkeypatch.setattr(limits, "MAX_MEMBERS", 5)
    (_, hidden) = local(tmp_path).scan("")
    assert "more than 5 members" in hidden.detail
    monkeypatch.setattr(limits, "MAX_MEMBERS", 50)
    monkeypatch.setattr(limits, "MAX_HELD_BYTES", 5)
    (_, hidden) = local(tmp_path).scan("")
    assert "unpacks to more than" in hidden.detail


def test_size_that_the_archive_lies_about_is_found_while_unpacking(tmp_path, monkeypatch):
    """The table of contents is not believed: bytes are counted as they come out."""
    content = with_header(
        {"a.md": b"x" * 100, "b.md": b"y" * 100},
        lambda header: header.replace(b"\x09\x64", b"\x09\x0a", 1),
    )
    (tmp_path / "a.7z").write_bytes(content)
    assert set(read(local(tmp_path)).values()) == {"damaged"}
    (tmp_path / "a.7z").write_bytes(packed({"a.md": b"x" * 100, "b.md": b"y" * 100}))
    source = local(tmp_path)
    items = list(source.scan(""))
    monkeypatch.setattr(limits, "MAX_HELD_BYTES", 150)
    assert source.fetch(items[0])[1] == b"x" * 100
    with pytest.raises(DocumentError, match="too-large"):
        source.fetch(items[1])


def test_dictionary_of_gigabytes_is_refused_by_the_limit_of_memory(tmp_path):
    """Two bytes of the header ask for it."""

    def enlarged(header):
        at = header.index(b"\x21\x21\x01") + 3
        return header[:at] + b"\x28" + header[at + 1 :]

    (tmp_path / "a.7z").write_bytes(with_header({"a.md": b"x" * 100}, enlarged))
    assert read(local(tmp_path)) == {"a.7z!/a.md": "memory"}


def read_all(source):
    """Return path -> content, or the reason for a failure; places that are hidden are left out."""
    found = {}
    for item in source.scan(""):
        if not isinstance(item, Unlisted):
            try:
                found[item.path] = source.fetch(item)[1]
            except DocumentError as error:
                found[item.path] = error.reason
    return found


def test_damage_costs_the_block_that_it_is_in_and_never_ends_in_a_crash(tmp_path):
    for number in range(8):
        generator = random.Random(number)
        content = bytearray(packed(TEXTS, filters=LZMA2 if number % 2 else PPMD))
        for _ in range(generator.randint(1, 8)):
            content[generator.randrange(len(content))] = generator.randrange(256)
        (tmp_path / f"{number}.7z").write_bytes(content)
    target = tmp_path / "two.7z"
    with py7zr.SevenZipFile(target, "w", filters=[{"id": py7zr.FILTER_COPY}]) as archive:
        archive.writestr(b"first block", "a.md")
    with py7zr.SevenZipFile(target, "a", filters=[{"id": py7zr.FILTER_COPY}]) as archive:
        archive.writestr(b"second block", "b.md")
    whole = target.read_bytes()
    target.write_bytes(whole.replace(b"first block", b"worst block"))
    found = read_all(local(tmp_path))
    assert (found["two.7z!/a.md"], found["two.7z!/b.md"]) == ("damaged", b"second block")
    assert len(found) >= 10


def test_process_that_takes_too_long_is_ended_and_gets_no_secrets(tmp_path, monkeypatch):
    """The environment of the run may hold keys; the process reads what strangers packed."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key")
    started = []
    popen = subprocess.Popen

    def keeping(*arguments, **options):
        started.append((popen(*arguments, **options), options["env"]))
        return started[-1][0]

    monkeypatch.setattr(seven_zip_frames.subprocess, "Popen", keeping)
    (tmp_path / "a.7z").write_bytes(packed(TEXTS))
    assert len(read(local(tmp_path))) == 3
    monkeypatch.setattr(seven_zip_frames, "MAX_SECONDS", 0.0)
    (_, hidden) = local(tmp_path).scan("")
    assert "took more than" in hidden.detail
    assert len(started) == 3
    assert all(process.poll() is not None for process, _ in started)
    assert all("OPENAI_API_KEY" not in environment for _, environment in started)


def test_archive_stays_one_document_that_names_the_extra_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(seven_zip, "available", lambda: False)
    content = packed({"a.md": b"a"})
    (tmp_path / "a.7z").write_bytes(content)
    (tmp_path / "b.zip").write_bytes(zipped({"inner.7z": content}))
    assert read(local(tmp_path)) == {"a.7z": content, "b.zip!/inner.7z": content}
    with pytest.raises(DocumentError, match=r"unsupported-type: .*pip install 'parquetry\[sevenzip\]'"):
        extract(RawDocument(content, "a.7z"), ExtractionSettings())
