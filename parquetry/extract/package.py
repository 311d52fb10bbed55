"""Opens the zip archives of office files and e-books without trusting their own declarations."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from parquetry.decompress import MAX_RATIO, is_bomb
from parquetry.errors import BrokenDocument
from parquetry.extract.allowance import count_unpacked

MAX_MEMBERS = 20_000
"""files; more than any office document or book has, and listing more would take seconds"""

_BLOCK = 1 << 18
_OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
_ENCODINGS = ("ascii", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
_DOCTYPES = tuple("<!DOCTYPE".encode(encoding) for encoding in _ENCODINGS)
_LONGEST_DOCTYPE = max(map(len, _DOCTYPES))
_NO_OFFICE_PROGRAM = "a document type declaration, which no office program writes"
_ENTITIES = tuple("<!ENTITY".encode(encoding) for encoding in _ENCODINGS)


class Package:
    """A zip archive in memory whose members are unpacked under one common cap.

    Args:
        content: the archive.
        max_unpacked_bytes: cap on the sum of all bytes actually unpacked, not of the sizes that the archive declares.

    Raises:
        BrokenDocument: not a zip archive, encrypted, or with too many members.
    """

    def __init__(self, content: bytes, max_unpacked_bytes: int) -> None:
        refuse_encrypted_container(content)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
            members = self._zip.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError) as error:
            raise BrokenDocument("damaged", f"the file is not a readable zip archive: {error}") from error
        if len(members) > MAX_MEMBERS:
            raise BrokenDocument("too-many-parts", f"the archive has {len(members)} members, more than {MAX_MEMBERS}")
        if any(member.flag_bits & 1 for member in members):
            raise BrokenDocument("encrypted", "the archive has encrypted members")
        self._members = {member.filename.replace("\\", "/").lstrip("/"): member for member in members}
        self._folded = {name.lower(): name for name in self._members}
        self._packed_bytes = len(content)
        self._limit = max_unpacked_bytes
        self._unpacked: dict[str, int] = {}
        self._total = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the members, with `/` between segments, in archive order."""
        return tuple(self._members)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._folded

    def read(self, name: str) -> bytes:
        """Unpack one member; names are case-insensitive, as OOXML requires.

        Raises:
            BrokenDocument: the member is missing or damaged, or the cap is exceeded.
        """
        return b"".join(self.blocks(name))

    def xml(self, name: str, *, allow_doctype: bool = False) -> Any:
        """Unpack and parse one member; entities are never expanded and nothing else is loaded.

        Args:
            name: name of the member.
            allow_doctype: accept a document type that declares no entities (used by EPUB, not by OOXML and ODF).

        Returns:
            The root, an lxml element, without comments and processing instructions.

        Raises:
            BrokenDocument: missing, damaged, not XML, or with a document type.
        """
        return parse_xml(self.read(name), name, allow_doctype=allow_doctype)

    def check(self) -> None:
        """Unpack everything once without keeping it, for libraries that open the archive themselves.

        Raises:
            BrokenDocument: a member is damaged, the cap is exceeded, or an XML part has a document type.
        """
        for name in self._members:
            tail = b""
            is_xml = name.lower().endswith((".xml", ".rels", ".vml"))
            for block in self.blocks(name):
                if is_xml:
                    _refuse(tail + block, _DOCTYPES, name, _NO_OFFICE_PROGRAM)
                    tail = block[-_LONGEST_DOCTYPE:]

    def repack(self, replaced: Mapping[str, bytes]) -> bytes:
        """Return the archive with some members replaced, stored without compression."""
        return pack({name: replaced[name] if name in replaced else self.read(name) for name in self._members})

    def blocks(self, name: str) -> Iterator[bytes]:
        """Unpack one member in blocks; see `read`. Data unpacked twice counts once."""
        key = self._folded.get(name.lower())
        if key is None:
            raise BrokenDocument("damaged", f"the part {name} is missing")
        member = self._members[key]
        unpacked = 0
        try:
            with self._zip.open(member) as stream:
                while block := stream.read(_BLOCK):
                    unpacked += len(block)
                    new = max(0, unpacked - self._unpacked.get(key, 0))
                    self._total += new
                    count_unpacked(new)
                    self._unpacked[key] = max(unpacked, self._unpacked.get(key, 0))
                    self._refuse_too_much(name, unpacked, member.compress_size)
                    yield block
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError) as error:
            raise BrokenDocument("damaged", f"the part {name} cannot be unpacked: {error}") from error

    def _refuse_too_much(self, name: str, unpacked: int, declared: int) -> None:
        if self._total > self._limit:
            raise BrokenDocument("too-large", f"unpacks to more than {self._limit} bytes (max_unpacked_bytes)")
        if is_bomb(unpacked, min(declared, self._packed_bytes)):
            raise BrokenDocument("too-large", f"the part {name} unpacks to more than {MAX_RATIO} times its packed size")


def refuse_encrypted_container(content: bytes) -> None:
    """Refuse an OLE2 container, distinguishing password-protected office files from damaged ones.

    Raises:
        BrokenDocument: `encrypted`, or `damaged` for an OLE2 container without an encrypted package.
    """
    if not content.startswith(_OLE2):
        return
    if is_encrypted_container(content):
        raise BrokenDocument("encrypted", "the file is protected with a password")
    raise BrokenDocument("damaged", "the file is an older binary office file under the name of a newer format")


def is_encrypted_container(content: bytes) -> bool:
    """Return True if this is the OLE2 container in which office programs store a password-protected file."""
    return content.startswith(_OLE2) and _ENCRYPTED_STREAM in content


def parse_xml(content: bytes, name: str, *, allow_doctype: bool = False) -> Any:
    """Parse XML without expanding entities or loading anything; see `Package.xml`.

    Raises:
        BrokenDocument: not XML, or with a document type.
    """
    from lxml import etree

    if allow_doctype:
        _refuse(content, _ENTITIES, name, "entity declarations")
    else:
        _refuse(content, _DOCTYPES, name, _NO_OFFICE_PROGRAM)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True, huge_tree=False
    )
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise not_well_formed(f"the part {name}", error) from error
    # The byte search above covers the usual encodings; libxml2 knows more.
    if root.getroottree().docinfo.internalDTD is not None and not allow_doctype:
        raise BrokenDocument("unsafe-xml", f"the part {name} has a document type declaration")
    return root


def not_well_formed(what: str, error: Exception) -> BrokenDocument:
    """Return the error for XML that lxml cannot parse; its maximum depth is 256 elements."""
    if "Excessive depth" in str(error):
        return BrokenDocument("too-deep", f"the elements of {what} are nested too deeply to be read")
    return BrokenDocument("damaged", f"{what} is not well-formed XML: {error}")


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return a zip archive of the given members, uncompressed and in order."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def _refuse(content: bytes, patterns: tuple[bytes, ...], name: str, what: str) -> None:
    if any(pattern in content for pattern in patterns):
        raise BrokenDocument("unsafe-xml", f"the part {name} has {what}")
