"""Messages of Outlook are extracted as mails are."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from email.message import EmailMessage

import pytest

from parquetry.errors import BrokenDocument, SkippedDocument
from parquetry.extract.registry import extract
from parquetry.extract.rtf.compressed import unpacked_rtf
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.files import msg_writer as outlook
from tests.files.compound_writer import write_compound
from tests.files.msg_writer import Ansi, message, msg

LETTER = {
    outlook.SUBJECT: "Bolts  and nuts", outlook.BODY: "Hello.\r\nThe bolts came.\r\n", outlook.SENDER: "Ada",
    outlook.SENDER_ADDRESS: "ada@example.org", outlook.SENT: datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
}  # fmt: skip
BOB = {outlook.NAME: "Bob", outlook.SMTP_ADDRESS: "bob@example.org", outlook.KIND: 1}
EVE = {outlook.NAME: "Eve", outlook.ADDRESS: "/o=Example/cn=eve", outlook.KIND: 2}


def read(content: bytes, name: str = "a.msg") -> Extraction:
    return extract(RawDocument(content, name), ExtractionSettings(ocr=False))


def compressed(packed: bytes, size: int) -> bytes:
    return struct.pack("<II4sI", len(packed) + 12, size, b"LZFu", 0) + packed


def test_properties_become_headers_title_and_metadata():
    extraction = read(msg(LETTER, [BOB, EVE]))
    assert extraction.title == "Bolts and nuts"
    assert extraction.text == (
        "# Bolts and nuts\n\nFrom: Ada <ada@example.org>\nTo: Bob <bob@example.org>\nCc: Eve\n"
        "Date: 2024-05-06 07:08:09+00:00\n\nHello.\nThe bolts came."
    )
    assert extraction.metadata == {
        "from": "Ada <ada@example.org>", "to": "Bob <bob@example.org>", "cc": "Eve",
        "date": "2024-05-06 07:08:09+00:00",
    }  # fmt: skip
    assert extraction.media_type == "application/vnd.ms-outlook"


def test_headers_that_it_came_with_win():
    came = "From: =?utf-8?q?Ad=C3=A9?= <a@example.org>\r\nTo: x@example.org,\r\n y@example.org\r\nMessage-ID: <1@a>\r\n"
    metadata = read(msg({**LETTER, outlook.HEADERS: came}, [BOB])).metadata
    assert metadata["from"] == "Adé <a@example.org>"
    assert metadata["to"] == "x@example.org, y@example.org"
    assert metadata["message_id"] == "<1@a>"
    assert metadata["date"] == "2024-05-06 07:08:09+00:00"


def test_text_of_a_code_page_is_decoded_in_it():
    told = {
        outlook.SUBJECT: Ansi("Šroubky".encode("cp1250")), outlook.BODY: Ansi("Došly šrouby.".encode("cp1250")),
        outlook.CODE_PAGE: 1250,
    }  # fmt: skip
    assert read(msg(told)).text == "# Šroubky\n\nDošly šrouby."


def test_html_is_read_where_the_text_says_nothing():
    page = "<html><body><h2>Größe</h2><p>The bolts came in <b>May</b>.</p><img src='cid:logo'></body></html>"
    logo = {outlook.FILENAME: "logo.txt", outlook.CONTENT: b"planted picture", outlook.CONTENT_ID: "logo"}
    web = {outlook.SUBJECT: "S", outlook.HTML: page.encode("iso8859-15"), outlook.WEB_CODE_PAGE: 28605}
    extraction = read(msg(web, attachments=[logo]))
    assert extraction.text == "# S\n\n## Größe\n\nThe bolts came in May."
    told = {**web, outlook.BODY: "HTML"}
    assert "Größe" in read(msg(told)).text
    told = {**web, outlook.BODY: "Größe. The bolts came in May, they said."}
    assert "##" not in read(msg(told)).text


@pytest.mark.parametrize("packed", [True, False])
def test_a_body_in_rich_text_is_read_if_there_is_no_other(packed: bool):
    text = rb"{\rtf1\ansi\mac x \u8364?\par planted words}"
    literal = b"".join(b"\0" + text[at : at + 8] for at in range(0, len(text), 8))
    stored = (
        compressed(literal, len(text))
        if packed
        else struct.pack("<II4sI", len(text) + 12, len(text), b"MELA", 0) + text
    )
    assert read(msg({outlook.SUBJECT: "S", outlook.RTF: stored})).text == "# S\n\nx €\n\nplanted words"


def test_references_of_compressed_rich_text_point_back_in_a_window():
    """The example of the specification: a reference into the words that are known, and one that overlaps itself."""
    packed = bytes.fromhex("03000a007263706731323542320af32068656c090020627705b06c647d0a800fa0")
    assert unpacked_rtf(compressed(packed, 43)) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    overlapping = bytes([0b00000010]) + b"x" + struct.pack(">H", (207 << 4) | 8)
    assert unpacked_rtf(compressed(overlapping, 11)) == b"x" * 11
    for broken in (b"", compressed(b"", 9)[:15], struct.pack("<II4sI", 12, 0, b"????", 0)):
        with pytest.raises(BrokenDocument, match="damaged"):
            unpacked_rtf(broken)


def test_attachments_are_chapters_and_messages_within_are_mails():
    inner = message({outlook.SUBJECT: "Inner", outlook.BODY: "planted inside"}, head=24)
    extraction = read(
        msg(
            LETTER,
            attachments=[{outlook.FILENAME: "a.csv", outlook.CONTENT: b"n,m\n1,2\n"}, ({outlook.NAME: "Inner"}, inner)],
        )
    )
    assert [(part.kind, part.number, part.name) for part in extraction.parts] == [
        ("document", 1, None), ("chapter", 1, "a.csv"), ("chapter", 2, "Inner"),
    ]  # fmt: skip
    assert "Attachments: a.csv, Inner" in extraction.text
    assert extraction.text.endswith("## a.csv\n\n| n | m |\n| --- | --- |\n| 1 | 2 |\n\n## Inner\n\nplanted inside")
    assert extraction.metadata["attachments"] == 2


def test_messages_nested_too_deeply_are_only_named():
    tree = message({outlook.SUBJECT: "Level 5", outlook.BODY: "hidden"}, head=24)
    for level in range(4, 0, -1):
        tree = message({outlook.SUBJECT: f"Level {level}", outlook.BODY: f"body {level}"}, (), [({}, tree)], head=24)
    extraction = read(msg(LETTER, attachments=[({}, tree)]))
    assert "body 2" in extraction.text
    assert "body 3" not in extraction.text
    assert extraction.warnings == ("attachment Level 3: mails are nested too deeply; this one was not read",)


def test_a_message_attached_to_a_mail_is_read_as_one_and_one_under_another_name_too():
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"], mail["Date"] = "a@b.c", "d@e.f", "Outer", "x"
    mail.set_content("See there.")
    mail.add_attachment(msg(LETTER), maintype="application", subtype="octet-stream", filename="old.msg")
    assert "## Bolts and nuts\n\nFrom: Ada" in read(mail.as_bytes(), "a.eml").text
    assert read(msg(LETTER), "a.bin").title == "Bolts and nuts"


@pytest.mark.parametrize("kind", ["IPM.Note.SMIME", "IPM.Note"])
def test_an_encrypted_body_is_noted_and_noise_is_not_indexed(kind: str):
    cipher = {outlook.FILENAME: "smime.p7m", outlook.CONTENT: b"-- noise --", outlook.CONTENT_TYPE: "application/x"}
    if kind == "IPM.Note":
        cipher[outlook.CONTENT_TYPE] = "application/pgp-encrypted"
    told = {outlook.SUBJECT: "Secret", outlook.CLASS: kind, outlook.SENDER: "Ada"}
    extraction = read(msg(told, attachments=[cipher]))
    assert extraction.text == "# Secret\n\nFrom: Ada"
    assert extraction.warnings == ("the body is encrypted; only the headers are indexed",)


def test_of_a_signed_message_the_signed_mail_is_read():
    signed = (
        b'Content-Type: multipart/signed; boundary="b"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nplanted words\r\n'
        b"--b\r\nContent-Type: application/pkcs7-signature; name=smime.p7s\r\n\r\nMIAG\r\n--b--\r\n"
    )
    told = {outlook.SUBJECT: "S", outlook.CLASS: "IPM.Note.SMIME.MultipartSigned"}
    extraction = read(msg(told, attachments=[{outlook.FILENAME: "smime.p7m", outlook.CONTENT: signed}]))
    assert extraction.text == "# S\n\nplanted words"


def test_what_is_no_message_is_refused_with_a_reason():
    with pytest.raises(BrokenDocument, match="damaged: it has no properties of a message"):
        read(write_compound({"other": b"x"}))
    with pytest.raises(BrokenDocument, match="damaged"):
        read(msg(LETTER)[:600])
    with pytest.raises(SkippedDocument, match="no-text"):
        read(msg({}))
