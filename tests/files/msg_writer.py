"""Writes messages of Outlook."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.files.compound_writer import Tree, write_compound

SUBJECT, CLASS, BODY, HTML, RTF, HEADERS = 0x0037, 0x001A, 0x1000, 0x1013, 0x1009, 0x007D
SENDER, SENDER_ADDRESS, TO, CODE_PAGE, WEB_CODE_PAGE, SENT = 0x0C1A, 0x0C1F, 0x0E04, 0x3FFD, 0x3FDE, 0x0039
NAME, ADDRESS, SMTP_ADDRESS, KIND = 0x3001, 0x3003, 0x39FE, 0x0C15
CONTENT, FILENAME, CONTENT_TYPE, CONTENT_ID = 0x3701, 0x3707, 0x370E, 0x3712

Properties = Mapping[int, Any]
"""number -> text (stored as Unicode), bytes (binary), `Ansi`, number or time"""


class Ansi(bytes):
    """Text in the encoding of the message."""


def message(
    properties: Properties, recipients: Sequence[Properties] = (), attachments: Sequence[Any] = (), head: int = 32
) -> Tree:
    """Return the storage of a message; an attachment is properties, or properties and the storage of a message."""
    tree = _storage(properties, head)
    for number, recipient in enumerate(recipients):
        tree[f"__recip_version1.0_#{number:08X}"] = _storage(recipient, 8)
    for number, attachment in enumerate(attachments):
        told, within = attachment if isinstance(attachment, tuple) else (attachment, None)
        storage = _storage(told, 8)
        if within is not None:
            storage["__substg1.0_3701000D"] = within
        tree[f"__attach_version1.0_#{number:08X}"] = storage
    return tree


def msg(properties: Properties, recipients: Sequence[Properties] = (), attachments: Sequence[Any] = ()) -> bytes:
    """Return a message as a file."""
    return write_compound(message(properties, recipients, attachments))


def _storage(properties: Properties, head: int) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    fixed = bytearray(head)
    for number, value in properties.items():
        if isinstance(value, Ansi):
            tree[f"__substg1.0_{number:04X}001E"] = bytes(value)
        elif isinstance(value, bytes):
            tree[f"__substg1.0_{number:04X}0102"] = value
        elif isinstance(value, str):
            tree[f"__substg1.0_{number:04X}001F"] = value.encode("utf-16-le")
        elif isinstance(value, datetime):
            ticks = int((value - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10_000_000
            fixed += struct.pack("<HHIQ", 0x40, number, 6, ticks)
        else:
            fixed += struct.pack("<HHIQ", 3, number, 6, value)
    tree["__properties_version1.0"] = bytes(fixed)
    return tree
