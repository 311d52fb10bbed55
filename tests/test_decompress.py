"""Streams are unpacked the same however they are cut into pieces."""

import bz2
import gzip
import lzma
import zlib
from functools import partial

import pytest

from parquetry.decompress import GZIP_MAGIC, Gzip, decompress

KINDS = {
    "gzip": (Gzip, gzip.compress),
    "bz2": (bz2.BZ2Decompressor, bz2.compress),
    "xz": (lzma.LZMADecompressor, partial(lzma.compress, preset=0)),
}


def cut(packed, size):
    return [packed[start : start + size] for start in range(0, len(packed), size)]


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("kind", KINDS)
def test_streams_that_follow_each_other_are_one_content(kind, size):
    new, compress = KINDS[kind]
    packed = compress(b"first ") + bytes(9) + compress(b"") + compress(b"x" * 600_000) + bytes(3)
    unpacked = list(decompress(cut(packed, size), new))
    assert b"".join(unpacked) == b"first " + b"x" * 600_000
    assert max(map(len, unpacked)) <= 1 << 18


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [0, 1, 12])
def test_stream_that_ends_too_early_is_told(kind, left):
    new, compress = KINDS[kind]
    with pytest.raises(EOFError):
        list(decompress([compress(b"x" * 99)[:left]], new))


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_content_after_a_stream_is_left_alone_only_where_the_beginning_of_another_is_known(size):
    packed = cut(gzip.compress(b"page") + b"\n<!-- made by a proxy -->", size)
    assert b"".join(decompress(packed, Gzip, GZIP_MAGIC)) == b"page"
    with pytest.raises(zlib.error):
        list(decompress(packed, Gzip))
