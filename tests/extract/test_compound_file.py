"""Endless chains of sectors are detected before anything follows them."""

import struct

import pytest

from parquetry.errors import BrokenDocument
from parquetry.extract.compound_file import CompoundFile, check_chains, stream
from parquetry.extract.registry import extract
from parquetry.model import RawDocument
from parquetry.settings.sections import ExtractionSettings
from tests.files.compound_writer import write_compound

FREE, END, TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def sector(*entries, rest=FREE):
    return struct.pack("<128I", *(*entries, *[rest] * (128 - len(entries))))


def compound(*sectors, tables=(0,), small=END, more=END):
    """A compound file of version 3; sector 0 is the allocation table unless others are named."""
    listed = [*tables, *[FREE] * (109 - len(tables))]
    header = struct.pack(
        "<8s16xHHHHH6xIIIIIIIII109I",
        *(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6),
        *(0, len(tables), 1, 0, 4096, small, 1, more, 0, *listed),
    )
    return header + b"".join(sectors)


def test_chains_that_end_are_left_alone():
    check_chains(compound(sector(TABLE, 2, 3, END), sector(), sector(), sector(1, 2, END), small=3))


@pytest.mark.parametrize(
    "content",
    [
        compound(sector(TABLE, 1), sector()),
        compound(sector(TABLE, 2, 3, 1), sector(), sector(), sector()),
        compound(sector(TABLE, END, END), sector(), sector(5, 6, 7, 8, 9, 5), small=2),
        compound(sector(TABLE, END), sector(rest=0) [:-4] + struct.pack("<I", 1), more=1),
        compound(sector(TABLE, END), tables=[0] * 109),
    ],
    ids=["itself", "three", "small-sectors", "list-of-tables", "table-again"],
)  # fmt: skip
def test_a_chain_without_end_is_damage(content):
    with pytest.raises(BrokenDocument, match="damaged: the chain of its sectors does not end"):
        check_chains(content)


def entry(name, kind, start, size):
    told = name.encode("utf-16-le") + b"\0\0"
    return struct.pack("<64sHBB12s36xII4x", told, len(told), kind, 1, b"\xff" * 12, start, size)


def test_a_stream_is_found_by_its_name_in_sectors_and_in_small_ones():
    directory = entry("Root Entry", 5, 3, 128) + entry("Workbook", 2, 0, 100) + entry("Long", 2, 4, 4100) + bytes(128)
    long = [bytes([number]) * 512 for number in range(9)]
    small = b"a" * 64 + b"b" * 64 + bytes(384)
    table = sector(TABLE, END, END, END, *range(5, 13), END)
    content = compound(table, directory, sector(1, END), small, *long, small=2)
    assert stream(content, ("Workbook",)) == b"a" * 64 + b"b" * 36
    assert stream(content, ("Long",)) == b"".join(long)[:4100]
    assert stream(content, ("Other",)) == b""
    assert stream(content[:700], ("Workbook",)) == b""


@pytest.mark.parametrize("size", [0, 8, 511, 512, 700])
def test_a_file_cut_short_is_for_the_reader_to_refuse(size):
    check_chains(compound(sector(TABLE, 1), sector())[:size])


def test_a_workbook_with_such_a_chain_is_refused_before_it_takes_memory():
    workbook = compound(sector(TABLE, 1), "Workbook".encode("utf-16-le").ljust(512, b"\0"))
    with pytest.raises(BrokenDocument, match="the chain of its sectors does not end"):
        extract(RawDocument(workbook, "a.xls"), ExtractionSettings())


def numbers_of(content, name):
    """Return the offsets of the directory entries with a name that begins so."""
    told, at = name.encode("utf-16-le"), -1
    while (at := content.find(told, at + 1)) >= 0:
        yield at


def test_storages_that_share_their_entries_are_damage():
    whole = bytearray(write_compound({f"folder {n}": {"a": b"x", "b": b"y"} for n in range(20)}))
    names = [f"folder {n}" for n in range(20)]
    file = CompoundFile(bytes(whole))
    listed = file.storage()
    assert [sorted(file.storage(listed[name])) for name in names] == [["a", "b"]] * 20
    for at in numbers_of(bytes(whole), "folder"):
        struct.pack_into("<I", whole, at + 76, listed["folder 0"])
    shared = CompoundFile(bytes(whole))
    with pytest.raises(BrokenDocument, match="damaged: its storages lie over each other"):
        _ = [shared.storage(listed[name]) for name in names]


def test_of_a_chain_no_more_is_read_than_the_stream_has():
    class Counted(bytes):
        slices = 0

        def __getitem__(self, key):
            type(self).slices += 1
            return super().__getitem__(key)

    whole = bytearray(write_compound({"long": b"x" * 300_000}))
    (at,) = numbers_of(bytes(whole), "long")
    struct.pack_into("<I", whole, at + 120, 5000)
    file = CompoundFile(Counted(whole))
    before = Counted.slices
    assert file.read(file.storage()["long"]) == b"x" * 5000
    assert Counted.slices - before == 10
