"""A fingerprint survives storage in a row; an invalid one causes all work to be redone."""

import pytest

from parquetry.planning.fingerprint import Fingerprint, Fingerprints


def test_fingerprint_reads_back_what_it_wrote():
    written = Fingerprint("a", "b", "c")
    assert str(written) == "a-b-c"
    assert Fingerprint.parse(str(written)) == written


@pytest.mark.parametrize("text", ["", "a", "a-b", "a-b-c-d"])
def test_anything_else_differs_from_every_fingerprint(text):
    assert Fingerprint.parse(text) == Fingerprint("", "", "")


def test_each_media_type_has_its_own_extraction_and_shares_the_rest():
    prints = Fingerprints(lambda media_type: f"of {media_type}", "b", "c")
    assert prints.of("text/plain") == Fingerprint("of text/plain", "b", "c")
    assert prints.of(None) == Fingerprint("of None", "b", "c")
