"""Random changes of files: a few bytes flipped, cut, doubled or inserted, in the file or in a member of its archive."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hypothesis import strategies as st

Step = Callable[[bytes, bytes], bytes]
"""(content of the file, content of another file) -> changed content"""

MAX_BYTES = 300_000
TOKENS = (
    *(b"<", b">", b"</", b"<!--", b"-->", b"<![CDATA[", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"<table>", b"<div>"),
    *(b"<td colspan=99999 rowspan=99999>", b"&#x110000;", b"&amp", b'"', b"'", b"''' ", b'"""', b"[", b"]", b"{", b"}"),
    *(b"[[", b"](", b"![", b"> ", b"- ", b"* * *", b"```", b"`", b"|", b"---\n", b"+++\n", b"...", b"\\", b"$$", b"::"),
    *(b"<<: *a\n", b"&a [*a, *a]", b"!!python/object:os.system ", b"? ", b"%YAML 9.9\n", b"=?utf-8?b?", b"=?x?q?=\n"),
    *(b"Content-Type: multipart/mixed; boundary=a\n\n--a\n", b"Content-Transfer-Encoding: base64\n", b"--a--\n", b";"),
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x1b]52;c;eA==\x07"),
    *(b"\n", b"\r", b"\t", b" ", b",", b";;;;", b"9", b"-", b"0x", b"1e999", b"NaN", b"null", b"PK\x03\x04"),
    *(b"PK\x05\x06", b"\xe2\x80\xae", b"stream\n", b"endstream\nendobj\n", b"%PDF-1.7\n"),
    *(b"1 0 obj\n<</Kids[1 0 R]/Length 99999999>>\n", b"\\u0000"),
)  # fmt: skip

_PLACE = st.floats(0, 1)
_COUNT = st.sampled_from((1, 2, 10, 100, 1000, 8000))
_TIMES = st.sampled_from((1, 1, 3, 20, 400))


class File(NamedTuple):
    """A file to be read."""

    content: bytes
    name: str

    def __repr__(self) -> str:
        return f"<{self.name}, {len(self.content)} bytes>"


@dataclass(frozen=True)
class Flip:
    """Flip one bit."""

    place: float
    bit: int

    def __call__(self, content: bytes, _: bytes) -> bytes:
        at = int(self.place * len(content))
        return content[:at] + bytes(byte ^ 1 << self.bit for byte in content[at : at + 1]) + content[at + 1 :]


@dataclass(frozen=True)
class Insert:
    """Insert a token with a special meaning for readers, often many times."""

    place: float
    token: bytes
    times: int

    def __call__(self, content: bytes, _: bytes) -> bytes:
        at = int(self.place * len(content))
        return content[:at] + self.token * self.times + content[at:]


@dataclass(frozen=True)
class Delete:
    """Delete some bytes."""

    place: float
    count: int

    def __call__(self, content: bytes, _: bytes) -> bytes:
        at = int(self.place * len(content))
        return content[:at] + content[at + self.count :]


@dataclass(frozen=True)
class Repeat:
    """Repeat some bytes."""

    place: float
    count: int
    times: int

    def __call__(self, content: bytes, _: bytes) -> bytes:
        at = int(self.place * len(content))
        return content[:at] + content[at : at + self.count] * self.times + content[at:]


@dataclass(frozen=True)
class Cut:
    """Cut off the end."""

    place: float

    def __call__(self, content: bytes, _: bytes) -> bytes:
        return content[: int(self.place * len(content))]


@dataclass(frozen=True)
class Splice:
    """Insert a part of another file."""

    place: float
    start: float
    count: int

    def __call__(self, content: bytes, other: bytes) -> bytes:
        at, start = int(self.place * len(content)), int(self.start * len(other))
        return content[:at] + other[start : start + self.count] + content[at:]


STEPS = st.one_of(
    st.builds(Flip, _PLACE, st.integers(0, 7)),
    st.builds(Insert, _PLACE, st.sampled_from(TOKENS), _TIMES),
    st.builds(Delete, _PLACE, _COUNT),
    st.builds(Repeat, _PLACE, _COUNT, _TIMES),
    st.builds(Cut, _PLACE),
    st.builds(Splice, _PLACE, _PLACE, _COUNT),
)


@dataclass(frozen=True)
class Mutation:
    """A sequence of changes of a file."""

    steps: tuple[Step, ...]
    member: float | None
    """position of the archive member to change, as a share of all members; None changes the bytes of the archive"""

    def __call__(self, content: bytes, other: bytes) -> bytes:
        """Return the changed file."""
        if self.member is not None and content.startswith(b"PK\x03\x04"):
            return self._in_archive(content, other)
        for step in self.steps:
            content = step(content, other)[:MAX_BYTES]
        return content

    def _in_archive(self, content: bytes, other: bytes) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(out, "w") as changed:
            members = archive.infolist()
            chosen = members[min(int((self.member or 0) * len(members)), len(members) - 1)]
            inside = replace(self, member=None)
            for each in members:
                held = archive.read(each)
                changed.writestr(each, inside(held, other) if each is chosen else held, each.compress_type)
        return out.getvalue()


def mutated(seeds: Sequence[File], extensions: Sequence[str] = ()) -> st.SearchStrategy[File]:
    """Return a strategy for changed copies of `seeds`, some with the wrong file name extension.

    Args:
        seeds: files to change.
        extensions: other file name extensions.
    """
    seed = st.sampled_from(seeds)
    mutation = st.builds(Mutation, st.lists(STEPS, min_size=1, max_size=8).map(tuple), st.none() | _PLACE)
    ending = st.just("") | st.sampled_from(("", *extensions))
    return st.builds(_changed, seed, seed, mutation, ending)


def _changed(file: File, other: File, mutation: Mutation, ending: str) -> File:
    return File(mutation(file.content, other.content), f"x{ending}" if ending else file.name)
