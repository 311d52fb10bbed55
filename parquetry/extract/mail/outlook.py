"""Messages of Outlook (MSG): the properties of a compound file as a mail ([MS-OXMSG])."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime

from parquetry.errors import BrokenDocument
from parquetry.extract.builder import TextBuilder
from parquetry.extract.compound_file import CompoundFile
from parquetry.extract.mail import parser as mail_parser
from parquetry.extract.mail.parts import ENCRYPTED, Attachment, Mail, Text, decoded, parse_mail, pictures_of, plainest
from parquetry.extract.rtf.compressed import unpacked_rtf
from parquetry.extract.rtf.parser import parse_rtf
from parquetry.extract.rtf.reader import add_rich_text

_PROPERTIES = "__properties_version1.0"
_RECIPIENT, _ATTACHMENT = "__recip_version1.0_", "__attach_version1.0_"
_FIXED = struct.Struct("<HHI8s")
"""type, number, flags and value of a property of fixed size"""
_HEADS = (32, 24, 8)
"""bytes before the properties of a message, of one within a message, and of a recipient or attachment"""
_TEXT_TYPES = {"001F": "utf-16-le", "001E": None, "0102": None}
"""type of a property -> encoding; None for the one of the message"""
_SUBJECT, _CLASS, _BODY, _HTML, _RTF = 0x0037, 0x001A, 0x1000, 0x1013, 0x1009
_HEADERS, _MESSAGE_ID, _REPLY_TO = 0x007D, 0x1035, 0x1042
_NAME, _ADDRESS = (0x0042, 0x0C1A), (0x5D02, 0x5D01, 0x0065, 0x0C1F)
"""of the sender, the one on whose behalf it was sent first"""
_SENT, _DELIVERED = 0x0039, 0x0E06
_CODE_PAGE, _WEB_CODE_PAGE = 0x3FFD, 0x3FDE
_SHOWN_TO, _SHOWN_CC = 0x0E04, 0x0E03
_RECIPIENT_KIND, _RECIPIENT_NAME, _RECIPIENT_ADDRESS = 0x0C15, 0x3001, (0x39FE, 0x3003)
_FILENAMES, _CONTENT, _CONTENT_TYPE, _CONTENT_ID = (0x3707, 0x3704, 0x3001), 0x3701, 0x370E, 0x3712
_WITHIN = 0x3701000D
_KINDS = {1: "To", 2: "Cc"}
_KEPT = ("from", "to", "cc", "date", "message-id", "in-reply-to")
_LATIN = range(28591, 28606)
"""code pages of the parts of ISO 8859, in their order"""
_CODE_PAGES = {65001: "utf-8", 20127: "cp1252", 20866: "koi8-r", 21866: "koi8-u", 50220: "iso-2022-jp",
               51932: "euc-jp", 51949: "euc-kr", 54936: "gb18030"}  # fmt: skip
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_LINE = re.compile(r"\s+")


def parse_outlook(content: bytes, max_depth: int) -> Mail:
    """Parse a message of Outlook.

    Args:
        content: the file.
        max_depth: levels of messages within messages to be read; of deeper ones only the subject.

    Raises:
        BrokenDocument: `damaged`.
    """
    file = CompoundFile(content)
    if _PROPERTIES not in file.storage():
        raise BrokenDocument("damaged", "it has no properties of a message")
    return _mail(file, 0, max_depth, _HEADS[0])


class _Properties:
    """Properties of a message, a recipient or an attachment.

    Args:
        file: the compound file.
        number: number of the storage with the properties.
        head: bytes before the properties of fixed size.
        encoding: encoding of text that is not in Unicode, if known.
    """

    def __init__(self, file: CompoundFile, number: int, head: int, encoding: str | None = None) -> None:
        self.names = file.storage(number)
        self._file = file
        self._fixed: dict[int, bytes] = {}
        if (fixed := self.names.get(_PROPERTIES)) is not None:
            content = file.read(fixed)[head:]
            whole = len(content) // _FIXED.size * _FIXED.size
            self._fixed = {number: value for _, number, _, value in _FIXED.iter_unpack(content[:whole])}
        self.encoding = encoding or _encoding(self.number(_CODE_PAGE))

    def number(self, number: int) -> int:
        return int.from_bytes(self._fixed.get(number, b"")[:4], "little")

    def time(self, *numbers: int) -> datetime | None:
        """Return the first of some times that is set."""
        for number in numbers:
            if ticks := int.from_bytes(self._fixed.get(number, b""), "little"):
                with suppress(OverflowError):
                    return _EPOCH + timedelta(microseconds=ticks // 10)
        return None

    def bytes(self, number: int) -> bytes:
        found = self.names.get(f"__substg1.0_{number:04X}0102")
        return self._file.read(found) if found is not None else b""

    def text(self, *numbers: int) -> str:
        """Return the first of some texts that is not empty."""
        for number in numbers:
            for kind, encoding in _TEXT_TYPES.items():
                found = self.names.get(f"__substg1.0_{number:04X}{kind}")
                content = self._file.read(found) if found is not None else b""
                text = content.decode(encoding, "replace") if encoding else decoded(content, self.encoding)
                if text := text.rstrip("\0"):
                    return text
        return ""

    def line(self, *numbers: int) -> str:
        return _LINE.sub(" ", self.text(*numbers)).strip()


def _mail(file: CompoundFile, number: int, depth: int, head: int) -> Mail:
    found = _Properties(file, number, head)
    mail = Mail(_headers(file, found))
    if depth < 0:
        return mail
    _add_body(mail, found)
    for each in _storages(found, _ATTACHMENT):
        _add_attachment(mail, file, _Properties(file, each, _HEADS[2], found.encoding), depth)
    mail.attachments = [each for each in mail.attachments if each.content_id not in mail.pictures]
    _open_secured(mail, found.line(_CLASS).lower())
    return mail


def _open_secured(mail: Mail, kind: str) -> None:
    """Read what an S/MIME message holds as an attachment: if it is signed, the mail; if encrypted, only noise."""
    if kind.endswith(".smime.multipartsigned") and len(mail.attachments) == 1:
        signed = parse_mail(mail.attachments[0].content)
        mail.texts, mail.attachments, mail.pictures = signed.texts or mail.texts, signed.attachments, signed.pictures
    mail.encrypted = mail.encrypted or (kind.endswith(".smime") and not mail.texts)
    if mail.encrypted:
        mail.attachments.clear()


def _storages(found: _Properties, prefix: str) -> Iterator[int]:
    for name in sorted(name for name in found.names if name.startswith(prefix)):
        yield found.names[name]


def _headers(file: CompoundFile, found: _Properties) -> Message:
    """Return the headers that the message came with, completed by its properties."""
    headers = Message()
    if came := found.text(_HEADERS):
        sent = mail_parser.parse(came.encode("utf-8", "replace").lstrip())
        for name in _KEPT:
            for value in sent.get_all(name, []):
                headers[name] = _LINE.sub(" ", str(value))
    told: dict[str, str] = {
        "subject": found.line(_SUBJECT),
        "from": _person(found.line(*_NAME), found.line(*_ADDRESS)),
        "message-id": found.line(_MESSAGE_ID),
        "in-reply-to": found.line(_REPLY_TO),
        **_recipients(file, found),
    }
    if (sent_at := found.time(_SENT, _DELIVERED)) is not None:
        told["date"] = format_datetime(sent_at)
    for name, value in told.items():
        if value and name not in headers:
            headers[name] = value
    return headers


def _recipients(file: CompoundFile, found: _Properties) -> dict[str, str]:
    people: dict[str, list[str]] = {"to": [], "cc": []}
    for each in _storages(found, _RECIPIENT):
        person = _Properties(file, each, _HEADS[2], found.encoding)
        kind = _KINDS.get(person.number(_RECIPIENT_KIND) & 3, "").lower()
        if kind:
            people[kind].append(_person(person.line(_RECIPIENT_NAME), person.line(*_RECIPIENT_ADDRESS)))
    shown = {"to": found.line(_SHOWN_TO), "cc": found.line(_SHOWN_CC)}
    return {kind: ", ".join(filter(None, names)) or shown[kind] for kind, names in people.items()}


def _person(name: str, address: str) -> str:
    """Return name and address; addresses within Exchange, which nobody knows, are left out."""
    address = address if "@" in address else ""
    if not address or address.lower() in name.lower():
        return name or address
    return f"{name} <{address}>" if name else address


def _add_body(mail: Mail, found: _Properties) -> None:
    """Add the plainest complete version of the body."""
    plain = found.text(_BODY)
    web = found.bytes(_HTML)
    page = decoded(web, _encoding(found.number(_WEB_CODE_PAGE))) if web else found.text(_HTML)
    mail.pictures.update(pictures_of(page))
    texts = plainest([Text(plain, False)] if plain else [], [Text(page, True)] if page else [])
    if not any(text.content.strip() for text in texts):
        texts = [Text(rich, False)] if (rich := _rich_body(found)) else []
    mail.texts.extend(texts)


def _rich_body(found: _Properties) -> str:
    packed = found.bytes(_RTF)
    if not packed:
        return ""
    builder = TextBuilder("text")
    add_rich_text(builder, parse_rtf(unpacked_rtf(packed).lstrip()))
    return builder.build(title=None, metadata={}, media_type="", extractor="").text


def _add_attachment(mail: Mail, file: CompoundFile, found: _Properties, depth: int) -> None:
    if found.line(_CONTENT_TYPE).lower() in ENCRYPTED:
        mail.encrypted = True
    within = found.names.get(f"__substg1.0_{_WITHIN:08X}")
    name = found.line(*_FILENAMES)
    if within is not None and not file.is_stream(within):
        inner = _mail(file, within, depth - 1, _HEADS[1])
        mail.attachments.append(Attachment(name, b"", inner))
        return
    attachment = Attachment(name, found.bytes(_CONTENT), None, found.line(_CONTENT_ID).strip("<>"))
    mail.attachments.append(attachment)


def _encoding(code_page: int) -> str | None:
    if code_page in _LATIN:
        return f"iso8859-{code_page - _LATIN.start + 1}"
    return _CODE_PAGES.get(code_page, f"cp{code_page}") if code_page else None
