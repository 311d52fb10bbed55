"""Archives of every format, built by the tests, as sources."""

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zipfile
from datetime import UTC, datetime

from parquetry.errors import DocumentError
from parquetry.model import Access, Item, Unlisted
from parquetry.sources.archive.source import ArchivedSource
from parquetry.sources.base import Place
from parquetry.sources.providers import open_place
from parquetry.sources.selection import Selection

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXTS = {"read.md": b"# Read me", "sub/deep/oak.txt": b"Oak stands.", "größe 🙂.txt": b"Umlaut"}


def zipped(members, **options):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, **options), content, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def tarred(members, packed=lambda content: content):
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), 1_900_000_000
            archive.addfile(info, io.BytesIO(content))
    return packed(target.getvalue())


KINDS = {
    "a.zip": zipped,
    "a.tar": tarred,
    "a.tar.gz": lambda members: tarred(members, gzip.compress),
    "a.TGZ": lambda members: tarred(members, gzip.compress),
    "a.tar.bz2": lambda members: tarred(members, bz2.compress),
    "a.tar.xz": lambda members: tarred(members, lzma.compress),
    "a.tar.zst": lambda members: tarred(members, zstd.compress),
    "a.tzst": lambda members: tarred(members, zstd.compress),
}


class Remote:
    """A source without local files, as if listed over the network."""

    def __init__(self, contents):
        self.contents = contents
        self.fetched = []

    def scan(self, prefix):
        for path, content in self.contents.items():
            yield Item(path, f"s3://box/{path}", len(content), "v1", datetime(2031, 1, 1, tzinfo=UTC), Access())

    def fetch(self, item):
        self.fetched.append(item.path)
        return item, self.contents[item.path]


def local(folder, **place):
    return open_place(Place("docs", str(folder), **place))


def remote(contents):
    return ArchivedSource(Remote(contents), Selection())


def read(source, prefix=""):
    """Return path -> content, or the reason for a failure."""
    found = {}
    for item in source.scan(prefix):
        assert isinstance(item, Item), item
        assert item.path not in found
        try:
            found[item.path] = source.fetch(item)[1]
        except DocumentError as error:
            found[item.path] = error.reason
    return found


def unlisted(source):
    return [found.path for found in source.scan("") if isinstance(found, Unlisted)]
