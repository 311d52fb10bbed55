"""Mailboxes: each mail is a chapter, with its attachments."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from parquetry.errors import BrokenDocument
from parquetry.extract import media_types as kinds
from parquetry.extract.detect import detect
from parquetry.extract.mail.mailbox import mails_of
from parquetry.extract.registry import extract
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings

FROM = "From ada@example.org Thu Feb 29 08:15:30 2024\n"
TAKEOUT = "From 1234567@xxx Sat Jul 04 12:00:00 +0000 2015\r\n"


def mail(subject: str, text: str, attached: bytes | None = None) -> str:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"], made["Date"] = "a@b.c", "d@e.f", subject, "Thu, 29 Feb 2024 08:15:30 GMT"
    made.set_content(text)
    if attached is not None:
        made.add_attachment(attached, maintype="text", subtype="csv", filename="a.csv")
    return made.as_string()


def mailbox(*mails: str) -> bytes:
    return "\n".join(FROM + each for each in mails).encode()


def read(content: bytes, name: str = "a.mbox") -> Extraction:
    return extract(RawDocument(content, name), ExtractionSettings(ocr=False))


def test_each_mail_and_each_attachment_is_a_chapter():
    extraction = read(mailbox(mail("One", "first words", b"n,m\n1,2\n"), mail("Two", "second words")))
    assert [(part.kind, part.number, part.name) for part in extraction.parts] == [
        ("chapter", 1, "One"), ("chapter", 2, "a.csv"), ("chapter", 3, "Two"),
    ]  # fmt: skip
    assert [(heading.level, heading.title) for heading in extraction.headings] == [(1, "One"), (2, "a.csv"), (1, "Two")]
    assert "first words" in extraction.text[: extraction.parts[0].end]
    assert extraction.text.endswith("Date: 2024-02-29 08:15:30+00:00\n\nsecond words")
    assert (extraction.title, extraction.metadata) == (None, {"mails": 2})


def test_only_lines_that_begin_a_mail_divide_it():
    body = "From here to 8:30 it rains.\n\nFrom now on\n\n>From the start 8:15\n>>From quotes\n"
    # No blank line stands before this one, and no header follows the next.
    body += "He wrote:\nFrom ada@example.org Thu Feb 29 08:15:30 2024\nSubject: rain\n\n"
    body += "From ada@example.org Thu Feb 29 08:15:30 2024\nno header\n"
    (first, second) = mails_of(mailbox(mail("One", body), mail("Two", "x")))
    assert b"\nFrom here to 8:30 it rains.\n\nFrom now on\n\nFrom the start 8:15\n>From quotes\n" in first
    assert b"Subject: Two" in second


def test_line_ends_and_dates_of_other_programs_are_known():
    content = "\r\n".join(TAKEOUT + mail(f"S{n}", "x").replace("\n", "\r\n") for n in range(3)).encode()
    assert [heading.title for heading in read(content).headings] == ["S0", "S1", "S2"]


def test_a_mailbox_is_known_by_its_content_and_a_mail_stays_one():
    content = mailbox(mail("One", "words"))
    assert detect(content, "Inbox") == kinds.MBOX
    assert detect(content, "a.eml") == kinds.EMAIL
    assert detect(b"From here 8:15 on\nit rains.\n", "note.txt") == kinds.PLAIN
    assert read(content, "Inbox").title == "One"


def test_one_mail_that_cannot_be_read_is_noted_and_the_others_are_read():
    deep = "From: a@b.c\nSubject: Deep\nDate: x\nMIME-Version: 1.0\n" + "".join(
        f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(200)
    )
    extraction = read(mailbox(deep, mail("Two", "second words")))
    assert extraction.warnings == ("mail 1: its parts are nested deeper than 100 levels (too-deep)",)
    assert "second words" in extraction.text


def test_a_mailbox_in_a_mail_is_read_one_deep():
    outer = EmailMessage()
    outer["From"], outer["To"], outer["Subject"], outer["Date"] = "a@b.c", "d@e.f", "Outer", "x"
    outer.set_content("See there.")
    outer.add_attachment(mailbox(mail("One", "x"), mail("Two", "y")), maintype="application", subtype="mbox",
                         filename="old.mbox")  # fmt: skip
    assert [(heading.level, heading.title) for heading in read(outer.as_bytes(), "a.eml").headings] == [
        (1, "Outer"), (2, "One"), (2, "Two"),
    ]  # fmt: skip


def test_what_holds_no_mail_is_damaged():
    with pytest.raises(BrokenDocument, match="damaged: no mail begins in it"):
        read(b"just words\n")
