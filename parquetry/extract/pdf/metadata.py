"""Metadata from the information dictionary of a PDF: author, program, dates."""

from __future__ import annotations

import re
from collections.abc import Mapping

from parquetry.extract.builder import normalise
from parquetry.model import Scalar

_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-]\d\d)'?(\d\d)?)?")


def of(information: Mapping[str, str], pages: int, language: str | None) -> dict[str, Scalar]:
    """Return the metadata of a document.

    Args:
        information: entries of the information dictionary.
        pages: number of pages.
        language: language that the document declares.
    """
    metadata: dict[str, Scalar] = {"pages": pages}
    for key, entry in (
        ("author", "Author"),
        ("subject", "Subject"),
        ("keywords", "Keywords"),
        ("creator", "Creator"),
        ("producer", "Producer"),
    ):
        metadata[key] = " ".join(normalise(information.get(entry, "")).split())
    for key, entry in (("created", "CreationDate"), ("modified", "ModDate")):
        metadata[key] = _iso_date(information.get(entry, ""))
    metadata["language"] = language or ""
    return metadata


def _iso_date(value: str) -> str:
    """Convert `D:20201002001208+02'00'` to `2020-10-02T00:12:08+02:00`; return an empty string for an invalid date."""
    match = _DATE.match(value.strip())
    if not match:
        return ""
    year, month, day, hour, minute, second, zulu, offset, offset_minutes = match.groups()
    date = f"{year}-{month or '01'}-{day or '01'}"
    if hour is None:
        return date
    zone = "+00:00" if zulu else f"{offset}:{offset_minutes or '00'}" if offset else ""
    return f"{date}T{hour}:{minute or '00'}:{second or '00'}{zone}"
