"""Archives are unpacked within limits, independent of the sizes that they declare."""

import io
import struct
import zipfile

import pytest

from parquetry.decompress import RATIO_FREE_BYTES
from parquetry.errors import BrokenDocument
from parquetry.extract import package as package_module
from parquetry.extract.package import Package, pack, parse_xml

MIB = 1024 * 1024


def archive(members, compression=zipfile.ZIP_DEFLATED):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as written:
        for name, content in members.items():
            written.writestr(name, content)
    return target.getvalue()


def reason_of(call):
    with pytest.raises(BrokenDocument) as caught:
        call()
    return caught.value.reason


def test_member_is_found_whatever_the_case_and_separator_of_its_name():
    package = Package(archive({"Word\\Document.xml": "<a/>"}), MIB)
    assert package.read("word/document.XML") == b"<a/>"
    assert "word/document.xml" in package
    assert package.names == ("Word/Document.xml",)


def test_missing_member_is_damage():
    assert reason_of(lambda: Package(archive({"a": "1"}), MIB).read("b")) == "damaged"


def test_content_that_is_no_archive_is_damage():
    assert reason_of(lambda: Package(b"PK\x03\x04 but nothing else", MIB)) == "damaged"


def test_archive_cut_short_is_damage():
    content = archive({"a": "x" * 5000})
    assert reason_of(lambda: Package(content[:-30], MIB)) == "damaged"


def test_member_with_changed_bytes_is_damage():
    content = bytearray(archive({"a": "abc" * 100}, zipfile.ZIP_STORED))
    content[60] ^= 0xFF
    assert reason_of(lambda: Package(bytes(content), MIB).read("a")) == "damaged"


def test_bytes_really_unpacked_count_over_all_members():
    package = Package(archive({"a": b"x" * 600, "b": b"y" * 600}), 1000)
    package.read("a")
    assert reason_of(lambda: package.read("b")) == "too-large"


def test_reading_a_member_again_costs_nothing():
    package = Package(archive({"a": b"x" * 600}), 1000)
    assert package.read("a") == package.read("a") == b"x" * 600


def test_declared_size_is_not_believed():
    """An attacker chooses the sizes in an archive's directory."""
    content = bytearray(archive({"a": b"x" * 100_000}))
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = struct.pack("<I", 10)
    assert reason_of(lambda: Package(bytes(content), 1000).read("a")) in ("too-large", "damaged")


def test_bomb_is_refused_by_its_ratio():
    content = archive({"a": bytes(RATIO_FREE_BYTES + MIB)})
    assert reason_of(lambda: Package(content, 1 << 40).check()) == "too-large"


def test_too_many_members_are_refused(monkeypatch):
    monkeypatch.setattr(package_module, "MAX_MEMBERS", 3)
    content = archive({str(number): "" for number in range(4)})
    assert reason_of(lambda: Package(content, MIB)) == "too-many-parts"


def test_encrypted_member_is_told_apart_from_damage():
    content = bytearray(archive({"a": "secret"}))
    content[6] |= 1
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    assert reason_of(lambda: Package(bytes(content), MIB)) == "encrypted"


@pytest.mark.parametrize(
    ("stream", "reason"), [("EncryptedPackage", "encrypted"), ("WordDocument", "damaged")], ids=["locked", "older"]
)
def test_ole_container_instead_of_an_archive_is_explained(stream, reason):
    content = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500) + stream.encode("utf-16-le") + bytes(500)
    assert reason_of(lambda: Package(content, MIB)) == reason


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_document_type_is_refused_in_every_encoding(encoding):
    declared = "utf-8" if encoding == "utf-8" else encoding
    bomb = f'<?xml version="1.0" encoding="{declared}"?><!DOCTYPE a [<!ENTITY b "bbbb">]><a>&b;</a>'.encode(encoding)
    package = Package(archive({"word/document.xml": bomb}), MIB)
    assert reason_of(lambda: package.xml("word/document.xml")) == "unsafe-xml"
    assert reason_of(package.check) == "unsafe-xml"


def test_document_type_across_two_blocks_is_found(monkeypatch):
    monkeypatch.setattr(package_module, "_BLOCK", 16)
    package = Package(archive({"a.xml": b"<!-- pad --> <!DOCTYPE a><a/>"}), MIB)
    assert reason_of(package.check) == "unsafe-xml"


def test_book_may_have_a_document_type_but_no_entities():
    root = parse_xml(b'<!DOCTYPE ncx PUBLIC "x" "http://127.0.0.1:1/x.dtd"><ncx/>', "toc.ncx", allow_doctype=True)
    assert root.tag == "ncx"
    with_entity = b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'
    assert reason_of(lambda: parse_xml(with_entity, "toc.ncx", allow_doctype=True)) == "unsafe-xml"


def test_repacked_archive_has_the_replaced_member_and_the_others():
    content = Package(archive({"a": "1", "b": "2"}), MIB).repack({"b": b"3"})
    assert Package(content, MIB).read("a") + Package(content, MIB).read("b") == b"13"


def test_packed_members_come_back_in_order():
    assert Package(pack({"z": b"1", "a": b"2"}), MIB).names == ("z", "a")
