"""Chains of sectors that do not end are found before anything follows them."""

import struct

import pytest

from knowledge.errors import BrokenDocument
from knowledge.extract.compound_file import check_chains
from knowledge.extract.registry import extract
from knowledge.model import RawDocument
from knowledge.settings import ExtractionSettings

FREE, END, TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def sector(*entries, rest=FREE):
    return struct.pack("<128I", *(*entries, *[rest] * (128 - len(entries))))


def compound(*sectors, tables=(0,), small=END, more=END):
    """A compound file of version 3, of which sector 0 is the table unless others are named."""
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


@pytest.mark.parametrize("size", [0, 8, 511, 512, 700])
def test_a_file_cut_short_is_for_the_reader_to_refuse(size):
    check_chains(compound(sector(TABLE, 1), sector())[:size])


def test_a_workbook_with_such_a_chain_is_refused_before_it_takes_memory():
    workbook = compound(sector(TABLE, 1), "Workbook".encode("utf-16-le").ljust(512, b"\0"))
    with pytest.raises(BrokenDocument, match="the chain of its sectors does not end"):
        extract(RawDocument(workbook, "a.xls"), ExtractionSettings())
