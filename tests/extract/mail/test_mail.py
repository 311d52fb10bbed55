"""Mails are extracted as readers see them, for every way of sending."""

import io
import zipfile
from email.message import EmailMessage
from email.mime.application import MIMEApplication

import pytest

from parquetry.extract.mail.reader import MailExtractor
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings

EML = "message/rfc822"
PNG = b"\x89PNG\r\n\x1a\n broken"


def message(subject="Bolts", text="Hello.", **headers):
    mail = EmailMessage()
    mail["Subject"] = subject
    mail["From"] = "Ada <ada@example.org>"
    mail["To"] = "bob@example.org"
    for name, value in headers.items():
        mail[name] = value
    if text is not None:
        mail.set_content(text)
    return mail


def extract(mail):
    content = mail if isinstance(mail, bytes) else mail.as_bytes()
    extraction = MailExtractor().extract(RawDocument(content, "a.eml"), EML, ExtractionSettings(ocr=False))
    for heading in extraction.headings:
        assert extraction.text[heading.start :].lstrip("#").startswith(f" {heading.title}")
    return extraction


def xlsx_of(word):
    import xlsxwriter

    target = io.BytesIO()
    workbook = xlsxwriter.Workbook(target, {"in_memory": True})
    workbook.add_worksheet("Stock").write(0, 0, word)
    workbook.close()
    return target.getvalue()


def test_headers_become_first_lines_title_and_metadata():
    mail = message("Grüße", Cc="Eve <eve@example.org>", Date="Mon, 06 May 2024 07:08:09 +0200")
    mail["Message-ID"] = "<1@example.org>"
    extraction = extract(mail)
    assert extraction.title == "Grüße"
    assert extraction.text == (
        "# Grüße\n\nFrom: Ada <ada@example.org>\nTo: bob@example.org\nCc: Eve <eve@example.org>\n"
        "Date: 2024-05-06 07:08:09+02:00\n\nHello."
    )
    assert extraction.metadata == {
        "from": "Ada <ada@example.org>",
        "to": "bob@example.org",
        "cc": "Eve <eve@example.org>",
        "message_id": "<1@example.org>",
        "date": "2024-05-06 07:08:09+02:00",
    }


def test_plain_text_is_preferred_to_its_html_twin():
    mail = message(text="The plain version of it all.")
    mail.add_alternative("<p>The <b>rich</b> version of it all.</p>", subtype="html")
    text = extract(mail).text
    assert "plain version" in text
    assert "rich" not in text


@pytest.mark.parametrize("plain", ["", " \n", "Open in HTML."], ids=["empty", "blank", "stub"])
def test_html_is_read_where_the_plain_text_says_nothing(plain):
    mail = message(text=plain)
    mail.add_alternative(f"<h2>News</h2><ul><li>planted</li></ul><p>{'More of it. ' * 20}</p>", subtype="html")
    extraction = extract(mail)
    assert "## News\n\n- planted" in extraction.text
    assert extraction.parts[0].format == "markdown"


TABLE = "<p>Prices as agreed.</p><table><tr><th>Part</th><th>Price</th></tr><tr><td>Hook</td><td>12</td></tr></table>"


def test_html_is_read_where_the_plain_text_took_its_tables_apart():
    mail = message(text="Prices as agreed.\n\nPart\n\nPrice\n\nHook\n\n12\n")
    mail.add_alternative(TABLE, subtype="html")
    extraction = extract(mail)
    assert "| Part | Price |\n| --- | --- |\n| Hook | 12 |" in extraction.text
    assert extraction.text.count("Hook") == 1


def test_plain_text_that_keeps_the_rows_of_its_tables_stays():
    mail = message(text="Prices as agreed.\n\nPart   Price\nHook      12\n")
    mail.add_alternative(TABLE, subtype="html")
    assert "|" not in extract(mail).text


def test_tables_that_only_place_things_do_not_make_html_the_better_version():
    mail = message(text="The plain version of it all.")
    rows = "".join(f"<tr><td>Rich {n}</td><td>version {n}</td></tr>" for n in range(3))
    mail.add_alternative(f'<table role="presentation">{rows}</table>', subtype="html")
    assert "plain version" in extract(mail).text


@pytest.mark.parametrize("kept", [True, False], ids=["main content only", "everything"])
def test_a_page_that_a_browser_saved_is_read_as_a_page(kept):
    menu = "".join(f'<li><a href="/{n}">Section {n}</a></li>' for n in range(9))
    text = "".join(f"<p>{'The harbour has three quays, and each of them has cranes. ' * 3}</p>" for _ in range(5))
    page = f"<html><body><nav><ul>{menu}</ul></nav><main><h1>Quays</h1>{text}</main></body></html>"
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "<Saved by Blink>", "Quays of the harbour"
    mail["Snapshot-Content-Location"] = "https://example.org/quays"
    mail.set_content(page, subtype="html")
    settings = ExtractionSettings(ocr=False, main_content_only=kept)
    extraction = MailExtractor().extract(RawDocument(mail.as_bytes(), "quays.mhtml"), EML, settings)
    assert extraction.title == "Quays of the harbour"
    assert "Saved by" not in extraction.text
    assert extraction.text.count("# Quays") == 1
    assert ("Section 3" in extraction.text) is not kept


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
def test_transfer_encodings_are_undone(encoding):
    mail = message(text=None)
    mail.set_content("Schöne Größe", cte=encoding)
    assert extract(mail).text.endswith("Schöne Größe")


@pytest.mark.parametrize(
    ("declared", "actual", "text"),
    [
        ("iso-8859-1", "utf-8", "Schöne Größe überall"),
        ("utf-8", "cp1252", "Schöne Größe überall"),
        ("no-such-charset", "utf-8", "Schöne Größe"),
        ("iso-2022-jp", "iso-2022-jp", "こんにちは世界"),
        ("utf-7", "utf-7", "Schöne Größe"),
        ("hz-gb-2312", "hz", "中文文字"),
        ("windows-1255", "cp1255", "שלום לכולם"),
    ],
)
def test_body_is_decoded_even_if_its_charset_is_named_wrongly(declared, actual, text):
    head = f"Subject: x\nContent-Type: text/plain; charset={declared}\nContent-Transfer-Encoding: 8bit\n\n"
    assert extract(head.encode() + text.encode(actual)).text.endswith(text)


@pytest.mark.parametrize(
    "subject",
    [
        "=?utf-8?q?Gr=C3=BC=C3=9Fe?=",
        "=?iso-8859-1?b?R3L832U=?=",
        "=?utf-8?b?R3LDvMM=?= =?utf-8?b?n2U=?=",
        "Grüße",
    ],
    ids=["quoted", "base64", "character-in-two", "raw"],
)
def test_subjects_are_decoded(subject):
    assert extract(f"Subject: {subject}\nFrom: a@b\n\nx".encode()).title == "Grüße"


def test_attached_document_is_a_part_under_its_name():
    mail = message()
    mail.add_attachment(xlsx_of("planted"), maintype="application", subtype="octet-stream", filename="stock 1.xlsx")
    extraction = extract(mail)
    assert "Attachments: stock 1.xlsx" in extraction.text
    assert [(p.kind, p.number, p.name, p.format) for p in extraction.parts] == [
        ("document", 1, None, "text"),
        ("chapter", 1, "stock 1.xlsx", "table"),
    ]
    assert extraction.text[extraction.parts[1].start :] == "## stock 1.xlsx\n\n# Stock\n\nplanted"
    assert [(h.level, h.title) for h in extraction.headings] == [(1, "Bolts"), (2, "stock 1.xlsx"), (3, "Stock")]


def test_attachment_that_fails_is_a_warning():
    mail = message()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("xl/workbook.xml", "broken")
    mail.add_attachment(target.getvalue(), maintype="application", subtype="octet-stream", filename="bad.xlsx")
    extraction = extract(mail)
    assert "Hello." in extraction.text
    assert len(extraction.warnings) == 1
    assert extraction.warnings[0].startswith("attachment bad.xlsx: ")


def test_picture_shown_by_the_html_is_no_attachment():
    mail = message(text=None)
    mail.set_content('<p>Look</p><img src="cid:logo">', subtype="html")
    mail.add_related(PNG, "image", "png", cid="<logo>", filename="logo.png")
    extraction = extract(mail)
    assert "Attachments" not in extraction.text
    assert extraction.warnings == ()


def test_attached_mails_are_read_down_to_two_levels():
    innermost = message("Level three", "PLANTED-3")
    inner, middle, outer = (
        message("Level two", "planted-2"),
        message("Level one", "planted-1"),
        message("Top", "planted-0"),
    )
    inner.add_attachment(innermost)
    middle.add_attachment(inner)
    outer.add_attachment(middle)
    extraction = extract(outer)
    assert all(f"planted-{level}" in extraction.text for level in range(3))
    assert "PLANTED-3" not in extraction.text
    assert [p.name for p in extraction.parts] == [None, "Level one", "Level two"]
    assert extraction.warnings == ("attachment Level three: mails are nested too deeply; this one was not read",)


def test_mail_file_attached_as_a_file_counts_as_a_mail():
    inner = message("Inner", "planted").as_bytes()
    mail = message()
    mail.add_attachment(inner, maintype="application", subtype="octet-stream", filename="inner.eml")
    assert [p.name for p in extract(mail).parts] == [None, "Inner"]


def test_folded_lines_are_joined():
    head = "Subject: x\nContent-Type: text/plain; format=flowed\n\n"
    assert extract(f"{head}one \ntwo\n-- \nAda".encode()).text.endswith("one two\n--\nAda")


def test_encrypted_body_leaves_the_headers():
    mail = message(text=None)
    mail.make_mixed()
    mail.attach(MIMEApplication(b"Version: 1", "pgp-encrypted"))
    extraction = extract(mail)
    assert extraction.title == "Bolts"
    assert extraction.warnings == ("the body is encrypted; only the headers are indexed",)


def test_wide_encoded_file_is_read():
    assert extract(message("Wide").as_string().encode("utf-16")).title == "Wide"


@pytest.mark.parametrize(
    "content",
    [
        b"Subject: planted\nDate: yesterday\nFrom: <<>\nTo: ,,;\n\nbody",
        b"Subject: planted\nContent-Type: multipart/mixed\n\nno boundary",
        b"Subject: planted\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain\n\ncut",
        b"Subject: planted\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\n!!!not base64",
        b"Subject: planted\nContent-Type: ;;;=\nContent-Disposition: ;filename*=x'y'%zz\n\nbody",
        b"Subject: planted =?utf-8?b?R?=\n\nbody",
        b"Subject: planted\nContent-Type: text/plain; charset*0*=utf''%00\n\n" + b"\x01\x02\x03\xff" * 50,
        b"Subject: planted",
    ],
    ids=["headers", "boundary", "cut", "base64", "types", "word", "binary", "bare"],
)
def test_malformed_mail_is_read_as_far_as_it_goes(content):
    extraction = extract(content)
    assert "planted" in (extraction.title or "")
    assert "planted" in extraction.text


def test_a_parameter_in_pieces_of_which_one_has_no_number_is_not_read():
    """Python's own parameter parser sorts by number, which fails here."""
    mail = b"Subject: Bolts\nContent-Type: text/plain; name*0*=%41; name*; charset=utf-8\n\nGr\xc3\xbc\xc3\x9fe.\n"
    assert "Grüße." in extract(mail).text
