"""E-mails with their attachments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquetry.errors import BrokenDocument, DocumentError
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder
from parquetry.extract.html.reader import add_html, read_page
from parquetry.extract.mail.mailbox import mails_of
from parquetry.extract.mail.outlook import parse_outlook
from parquetry.extract.mail.parts import Attachment, Mail, open_mail, parse_mail
from parquetry.extract.media_types import EMAIL, MBOX, MSG
from parquetry.extract.readers import READERS
from parquetry.model import Extraction, RawDocument, Scalar, TextFormat

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

MAX_DEPTH = 2
"""levels of mails nested in a mail that are read; deeper ones are only named"""
MAX_ATTACHMENTS = 200
"""attachments that are read; further ones are only named"""

_SHOWN = ("from", "to", "cc")
_KEPT = {"from": "from", "to": "to", "cc": "cc", "message-id": "message_id", "in-reply-to": "in_reply_to"}


class MailExtractor(ListedExtractor):
    """Reads e-mails (EML), messages of Outlook (MSG), mailboxes (mbox) and web archives (MHTML)."""

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one mail: its headers and body as the first part, and a part for each readable attachment.

        A mailbox has a part for each mail.
        """
        if media_type == MBOX:
            return self._extract_mailbox(document.content, settings)
        mail = _parsed(document.content, media_type)
        writer = _MailWriter(settings)
        writer.write(mail, 0)
        metadata: dict[str, Scalar] = {key: mail.header(name) for name, key in _KEPT.items()}
        metadata["date"] = mail.date()
        if mail.attachments:
            metadata["attachments"] = len(mail.attachments)
        return writer.builder.build(
            title=mail.header("subject"),
            metadata=metadata,
            media_type=media_type,
            extractor=self.id,
            warnings=writer.warnings,
        )

    def _extract_mailbox(self, content: bytes, settings: ExtractionSettings) -> Extraction:
        writer = _MailWriter(settings)
        mails = writer.write_mailbox(content, 0)
        return writer.builder.build(
            title=writer.subject if mails == 1 else None,
            metadata={"mails": mails},
            media_type=MBOX,
            extractor=self.id,
            warnings=writer.warnings,
        )


def _parsed(content: bytes, media_type: str, depth: int = 0) -> Mail:
    return parse_outlook(content, MAX_DEPTH - depth) if media_type == MSG else parse_mail(content)


class _MailWriter:
    """Writes a mail and its attachments into one builder."""

    def __init__(self, settings: ExtractionSettings) -> None:
        self.builder = TextBuilder("text")
        self.warnings: list[str] = []
        self._settings = settings
        self._parts = 0
        self._in_mailbox = False
        self.subject = ""
        """subject of the first mail"""

    def write_mailbox(self, content: bytes, depth: int) -> int:
        """Write the mails of a mailbox; return their number.

        Raises:
            BrokenDocument: `damaged`, there is none.
        """
        self._in_mailbox = True
        number = 0
        for number, mail in enumerate(mails_of(content), start=1):
            try:
                self.write(parse_mail(mail), depth)
            except DocumentError as error:
                self.warnings.append(f"mail {number}: {error.detail} ({error.reason})")
        if not number:
            line = "From ada@example.org Thu Feb 29 08:15:30 2024"
            raise BrokenDocument("damaged", f"no mail begins in it, with a line as: {line}")
        return number

    def write(self, mail: Mail, depth: int) -> None:
        self.subject = self.subject or mail.header("subject")
        has_html = any(text.is_html for text in mail.texts)
        self._open_part(mail.header("subject"), "markdown" if has_html else "text", depth)
        if has_html and mail.is_web_archive:
            self._write_page(mail)
            return
        self.builder.heading(1 + depth, mail.header("subject"))
        lines = [f"{name.title()}: {value}" for name in _SHOWN if (value := mail.header(name))]
        if date := mail.date():
            lines.append(f"Date: {date}")
        if names := [name for attachment in mail.attachments if (name := _shown_name(attachment))]:
            lines.append(f"Attachments: {', '.join(names)}")
        self.builder.text("\n".join(lines))
        if mail.encrypted:
            self.warnings.append("the body is encrypted; only the headers are indexed")
        for text in mail.texts:
            if text.is_html:
                add_html(self.builder, text.content, main_only=False)
            else:
                self.builder.text(text.content)
        for number, attachment in enumerate(mail.attachments, start=1):
            if number > MAX_ATTACHMENTS:
                self.warnings.append(f"attachments after the first {MAX_ATTACHMENTS} were not read")
                break
            self._write_attachment(attachment, depth + 1)

    def _write_page(self, mail: Mail) -> None:
        """Write a page that a browser saved; what it shows beside its text, such as pictures, is part of it."""
        for text in mail.texts:
            if text.is_html:
                page = read_page(self.builder, text.content, main_only=self._settings.main_content_only)
                self.warnings.extend(page.warnings)

    def _open_part(self, name: str | None, text_format: TextFormat, depth: int) -> None:
        if depth == 0 and not self._in_mailbox:
            self.builder.part("document", 1, None, text_format)
        else:
            self._parts += 1
            self.builder.part("chapter", self._parts, name or None, text_format)

    def _write_attachment(self, attachment: Attachment, depth: int) -> None:
        from parquetry.extract.detect import detect
        from parquetry.extract.registry import extract

        name = _shown_name(attachment) or "attachment"
        if attachment.message is None and not attachment.content:
            return
        try:
            kind = EMAIL if attachment.message is not None else detect(attachment.content, attachment.filename)
            is_mail = kind in READERS["mail.reader:MailExtractor"].media_types
            if is_mail and depth > MAX_DEPTH:
                self.warnings.append(f"attachment {name}: mails are nested too deeply; this one was not read")
            elif attachment.message is not None:
                self.write(open_mail(attachment.message), depth)
            elif kind == MBOX:
                self.write_mailbox(attachment.content, depth)
            elif is_mail:
                self.write(_parsed(attachment.content, kind, depth), depth)
            else:
                extraction = extract(RawDocument(attachment.content, attachment.filename), self._settings)
                self._write_document(name, extraction, depth)
        except DocumentError as error:
            self.warnings.append(f"attachment {name}: {error.detail} ({error.reason})")

    def _write_document(self, name: str, extraction: Extraction, depth: int) -> None:
        """Write the text of an attached document, with its headings one level below its name."""
        self._open_part(name, extraction.parts[0].format, depth)
        self.builder.heading(depth + 1, name)
        start = self.builder.text(extraction.text, keep_layout=True)
        if start is None:
            return
        start -= len(extraction.text) - len(extraction.text.lstrip("\n"))
        for heading in extraction.headings:
            self.builder.mark_heading(start + heading.start, depth + 1 + heading.level, heading.title)
        self.warnings.extend(f"attachment {name}: {warning}" for warning in extraction.warnings)


def _shown_name(attachment: Attachment) -> str:
    if attachment.filename or attachment.message is None:
        return attachment.filename
    return open_mail(attachment.message).header("subject")
