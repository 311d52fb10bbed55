"""Personal data is recognised by its form; numbers and words that only resemble it are left alone."""

from __future__ import annotations

import pytest

from parquetry.sessions.distill.personal_data import personal_data

PERSONAL = [
    ("Write to ａｄａ＠ｅｘａｍｐｌｅ．ｏｒｇ", "e-mail address"),
    ("Tel. ＋４９ １５１ ２３４５６７８９", "phone number"),
    ("Mail ada.lovelace@example.org for access.", "e-mail address"),
    ("Contact: ada(at)example(dot)com", "e-mail address"),
    ("Ada's address is ada+test@mail.example.co.uk.", "e-mail address"),
    ("Write to ＡＤＡ@example.org", "e-mail address"),
    ("Call Ada at +44 20 7946 0958.", "phone number"),
    ("Her mobile is +49 151 23456789.", "phone number"),
    ("Phone: (415) 555-2671", "phone number"),
    ("Her phone number is 020 7946 0958.", "phone number"),
    ("Ruf mich an: Telefon 030 123456", "phone number"),
    ("Ada's cell is 415-555-2671.", "phone number"),
    ("WhatsApp +1-415-555-2671", "phone number"),
    ("Ada pays with 4111 1111 1111 1111.", "card number"),
    ("card 5500-0000-0000-0004", "card number"),
    ("Her IBAN is DE89 3704 0044 0532 0130 00.", "account number"),
    ("GB82WEST12345698765432 is the account.", "account number"),
    ("SSN 078-05-1120", "social security number"),
    ("Téléphone : 01 42 68 53 00", "phone number"),
    ("手机 13812345678", "phone number"),
    ("Amex 378282246310005", "card number"),
    ("ring 07700 900123", "phone number"),
    ("Ihre Handynummer ist 0151 23456789", "phone number"),
    ("llámame al teléfono 912 345 678", "phone number"),
    ("Ada_Lovelace@workshop.museum signs.", "e-mail address"),
    ("Reach me: ada@example.org, or later.", "e-mail address"),
    ("<ada@example.org>", "e-mail address"),
    ("mailto:ada@example.org", "e-mail address"),
    ("ada [at] example [dot] org", "e-mail address"),
    ("Ada's fax is +33 1 42 68 53 00.", "phone number"),
    ("Mobile: +1 (415) 555-2671 ext. 5", "phone number"),
    ("Portable 06 12 34 56 78", "phone number"),
    ("Handy: 0170/1234567", "phone number"),
    ("Telefoon 020 123 4567", "phone number"),
    ("Her cell: 415.555.2671", "phone number"),
    ("IBAN FR14 2004 1010 0505 0001 3M02 606", "account number"),
    ("Mastercard 5555555555554444", "card number"),
    ("携帯 090-1234-5678", "phone number"),
    ("Call me on 020 7946 0958", "phone number"),
]
OTHER = [
    "The help text examples at lines 731-733 show both.",
    "The account DE88 3704 0044 0532 0130 00 is made up.",
    "Card 4111 1111 1111 1112 is made up.",
    "The build takes 1234567 ms on 16 cores.",
    "Ticket 2023-01-15 was closed.",
    "Version 1.2.3.4567 of lodash@4.17.21 breaks.",
    "git@github.com:parquetry/parquetry.git is the repository.",
    "actions/checkout@v4 is pinned.",
    "The unit getty@tty1.service is masked.",
    "Order 4111111111111112 failed.",
    "Commit 3fa2c811deadbeef01234567 broke it.",
    "Ports 8080, 8443 and 9000 are open.",
    "The server is at 10.0.0.5.",
    "The timestamp 1700000000000 is in milliseconds.",
    "Between 2019-2020 and 2021-2022 sales rose 12%.",
    "CVE-2025-11849 is fixed in 1.11.",
    "ISBN 978-3-16-148410-0 is the handbook.",
    "Call the function with 3 arguments of 1000000 rows.",
    "The call center handles 250000 calls a year.",
    "Room 415-555 is the meeting room.",
    "@ada reviews pull requests.",
    "Use decorators such as @app.route in Flask.",
    "The checksum is 0x1234567890abcdef.",
    "Part number 123-45-678 is obsolete.",
    "UUID 123e4567-e89b-12d3-a456-426614174000 is reserved.",
    "The distance is 384400 km.",
    "user@host syntax is used with ssh.",
    "Invoice 2024 0001 2345 6789 is paid.",
    "The call took 1234567890 nanoseconds.",
    "Text columns are limited to 4294967295 bytes.",
    "Serial 1234 5678 9012 3456 is on the case.",
    "Reach 100,000,000 rows before compaction.",
    "The batch holds 4012888888881882 rows.",
    "Hash 5f4dcc3b5aa765d61d8327deb882cf99 is the file's.",
    "Phone support is open from 8 to 18.",
    "The phone has 128 GB.",
    "Version 10.15.7 of the phone app",
    "Bob @ the workshop",
    "The ratio is 16:9 at 3840x2160.",
    "Temperature 21.5 C at 101325 Pa",
    "Line 123-45 of the file",
    "pi is 3.14159265358979",
    "The DOI is 10.1000/182.",
    "npm i @types/node@20.1.0",
    "Call sites: 1234 in 56 files",
    "Ring buffer of 65536 entries",
    "ISO 27001:2022 and RFC 9110",
    "Set the fax to 9600 baud.",
    "The model 555-1234-A was sold.",
    "GB82TEST is a made-up prefix.",
    "Year 2024, week 32, day 4",
    "Cell B12 holds the total of 1000000.",
    "1.234.567,89 EUR were paid.",
    "The 10-K of 2023 names it.",
    "Signal 15 stops the process.",
    "Text at 12 pt, 1.5 lines",
]


@pytest.mark.parametrize(("text", "kind"), PERSONAL)
def test_personal_data_is_known(text, kind):
    assert personal_data(text) == (kind,)


@pytest.mark.parametrize("text", OTHER)
def test_what_only_looks_like_it_is_left_alone(text):
    assert personal_data(text) == ()


def test_several_kinds_are_told_once_each():
    assert personal_data("Ada: ada@example.org, a@example.org, +44 20 7946 0958") == ("e-mail address", "phone number")


def test_the_tables_are_as_long_as_they_should_be():
    assert len(PERSONAL) + len(OTHER) >= 60
