"""Splits an e-mail into headers, the body that a person would read, and attachments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime

from parquetry.errors import BrokenDocument
from parquetry.extract.encoding import decode
from parquetry.extract.mail import parser as mail_parser
from parquetry.extract.mail.tables import keeps_rows
from parquetry.extract.scanning import Marks

STUB_SHARE = 0.2
"""share of its HTML version below which a plain text only says to read the mail as HTML"""

_STATEFUL = re.compile(r"(?i)(x-)?(iso-2022|utf-?7|hz)")
"""encodings whose bytes all look like ASCII"""
_TAGS = Marks(
    re.compile(r"<(?:(script|style|head)\b)?", re.IGNORECASE),
    {kind: re.compile(rf"</{kind}\s*+>", re.IGNORECASE) for kind in ("script", "style", "head")}
    | {"": re.compile(">")},
)
_ENTITY = re.compile(r"&\w++;")
ENCRYPTED = frozenset({"multipart/encrypted", "application/pgp-encrypted"})
_SIGNATURES = frozenset({"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"})
_PICTURE = re.compile(r"cid:([^\"'\s>)]+)")
_LEADING = b"\xef\xbb\xbf\r\n"


@dataclass(slots=True)
class Text:
    """A piece of the body."""

    content: str
    is_html: bool


@dataclass(slots=True)
class Attachment:
    """A file or a message attached to a mail."""

    filename: str
    content: bytes
    message: Message | Mail | None
    """attached mail, or its message; None for other attachments"""
    content_id: str = ""
    """id by which HTML refers to the attachment as a picture"""


@dataclass(slots=True)
class Mail:
    """The contents of a mail."""

    headers: Message
    texts: list[Text] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    encrypted: bool = False
    pictures: set[str] = field(default_factory=set)
    """content ids of the pictures shown by the HTML of this mail: logos, signatures, tracking pixels"""

    def header(self, name: str) -> str:
        """Return a decoded header on one line; repeated headers are joined by commas."""
        found = (value for key, value in self.headers.raw_items() if key.lower() == name)
        return ", ".join(text for value in found if (text := " ".join(_header_text(value).split())))

    @property
    def is_web_archive(self) -> bool:
        """True for a page that a browser saved as a mail (MHTML)."""
        return bool(self.header("snapshot-content-location")) or self.header("from").lower().startswith("<saved by ")

    def date(self) -> str:
        """Return the date in ISO 8601 with its offset; unchanged if it is not a valid date."""
        text = self.header("date")
        try:
            return parsedate_to_datetime(text).isoformat(" ", "seconds")
        except (ValueError, TypeError, IndexError, OverflowError):
            return text


def parse_mail(content: bytes) -> Mail:
    """Parse the bytes of a mail and sort its parts.

    Raises:
        BrokenDocument: `too-deep` or `too-many-parts`.
    """
    if b"\0" in content[:4]:
        content = decode(content)[0].encode("utf-8")
    return open_mail(mail_parser.parse(content.lstrip(_LEADING)))


def open_mail(message: Message | Mail) -> Mail:
    """Sort the parts of a parsed mail into texts and attachments, unless that is done."""
    if isinstance(message, Mail):
        return message
    mail = Mail(message)
    _collect(message, mail)
    mail.attachments = [found for found in mail.attachments if found.content_id not in mail.pictures]
    return mail


def _collect(part: Message, mail: Mail) -> None:
    kind = part.get_content_type()
    if kind in ENCRYPTED or (kind.endswith("pkcs7-mime") and "signed" not in str(part.get_param("smime-type"))):
        mail.encrypted = True
    elif kind in _SIGNATURES:
        return
    elif kind == "multipart/alternative" and part.is_multipart():
        _collect_alternative(part, mail)
    elif kind == "message/rfc822" and part.is_multipart():
        inner = _children(part)[0]
        mail.attachments.append(Attachment(_filename(part) or "", b"", inner))
    elif kind == "message/delivery-status":
        return
    elif part.is_multipart():
        for child in _children(part):
            _collect(child, mail)
    elif _is_attachment(part):
        content_id = str(part.get("content-id") or "").strip(" <>")
        mail.attachments.append(Attachment(_filename(part) or "", _payload(part), None, content_id))
    elif kind.startswith(("text/", "multipart/")):
        text = Text(_text(part), kind == "text/html")
        mail.texts.append(text)
        if text.is_html:
            mail.pictures.update(pictures_of(text.content))


def _collect_alternative(part: Message, mail: Mail) -> None:
    """Choose the plainest complete version of a body; keep the attachments of all versions."""
    versions = []
    for child in _children(part):
        version = Mail(child)
        _collect(child, version)
        mail.attachments.extend(version.attachments)
        mail.encrypted = mail.encrypted or version.encrypted
        mail.pictures |= version.pictures
        versions.append(version.texts)
    plain = next((texts for texts in versions if _letters(texts) and not any(text.is_html for text in texts)), [])
    rich = next((texts for texts in versions if any(text.is_html for text in texts)), [])
    mail.texts.extend(plainest(plain, rich))


def plainest(plain: list[Text], rich: list[Text]) -> list[Text]:
    """Return the plain version of a body, or HTML if the plain one only says to read that, or took tables apart."""
    if not _letters(rich):
        return plain
    if not _letters(plain) or _letters(plain) < STUB_SHARE * _letters(rich):
        return rich
    return plain if keeps_rows([text.content for text in plain], [text.content for text in rich]) else rich


def pictures_of(page: str) -> list[str]:
    """Return the content ids of the pictures that HTML shows."""
    return _PICTURE.findall(page)


def _letters(texts: list[Text]) -> int:
    return sum(len("".join(_ENTITY.sub(" ", _TAGS.replace(text.content, lambda _: " ")).split())) for text in texts)


def _is_attachment(part: Message) -> bool:
    disposition = part.get_content_disposition()
    if disposition == "attachment":
        return True
    return _filename(part) is not None and not (disposition == "inline" and part.get_content_maintype() == "text")


def _children(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [child for child in payload if isinstance(child, Message)] if isinstance(payload, list) else []


def _filename(part: Message) -> str | None:
    name = part.get_filename()
    return " ".join(_header_text(name).replace("\\", "/").rsplit("/", 1)[-1].split()) or None if name else None


def _payload(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _text(part: Message) -> str:
    content = _payload(part) if not part.get_content_type().startswith("multipart/") else _raw(part)
    text = decoded(content, part.get_content_charset())
    if str(part.get_param("format")).lower() == "flowed" and part.get_content_type() == "text/plain":
        text = _unfolded(text, delete_space=str(part.get_param("delsp")).lower() == "yes")
    return text


def _raw(part: Message) -> bytes:
    """Return the payload of a multipart without a boundary, which the parser leaves as one text."""
    payload = part.get_payload()
    return payload.encode("utf-8", "surrogateescape") if isinstance(payload, str) else b""


def _unfolded(text: str, *, delete_space: bool) -> str:
    """Join lines folded by a mail program (RFC 3676): they end in a space, except signature separators."""
    pieces = []
    for line in text.splitlines():
        if line.endswith(" ") and line != "-- " and not line.startswith(">"):
            pieces.append(line[:-1] if delete_space else line)
        else:
            pieces.append(line + "\n")
    return "".join(pieces)


def decoded(content: bytes, charset: str | None) -> str:
    """Decode text in the charset named by the mail if it fits, else in one that fits."""
    if charset and _STATEFUL.match(charset):
        try:
            return content.decode(charset)
        except (UnicodeDecodeError, LookupError):
            pass
    try:
        return decode(content, charset)[0]
    except BrokenDocument:
        return content.decode("ascii", "replace")


def _header_text(value: str) -> str:
    return "".join(_header_pieces(value))


def _header_pieces(value: str) -> Iterator[str]:
    raw = str(value).encode("utf-8", "surrogateescape")
    if b"=?" not in raw:
        yield decoded(raw, None)
        return
    for piece, charset in mail_parser.encoded_words(decoded(raw, None)):
        yield piece if isinstance(piece, str) else decoded(piece, charset)
