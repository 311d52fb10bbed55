"""Character encodings that a server declares for a text, in any form."""

import pytest

from parquetry.sources.web.validators import as_declared

LATIN = "Größe".encode("latin-1")


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("text/plain; charset=iso-8859-1", "Größe".encode()),
        ("text/plain; charset*0*=iso-8859-1; charset*", LATIN),
        (";;;=;*0*=;", LATIN),
        ("", LATIN),
    ],
)
def test_a_header_that_cannot_be_read_declares_nothing(declared, text):
    assert as_declared(LATIN, declared, "a.txt").removeprefix(b"\xef\xbb\xbf") == text
