"""Page headers and footers: what they say besides the number of the page."""

from __future__ import annotations

import re

_PAGE_NUMBER = re.compile(
    r"(\b(page|seite|pagina|página)\b|^)\W*\d*\W*(\b(of|von|de|di|sur|van)\b\W*\d+\W*)?$", re.IGNORECASE
)


def without_page_number(text: str) -> str:
    """A header or footer on one line without `Page 3 of 7` at its end; empty if it says nothing else."""
    return _PAGE_NUMBER.sub("", text).strip(" _-–—|\t")
