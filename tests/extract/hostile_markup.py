"""Pages, e-books, notebooks, code and texts built to exhaust their reader, by class.

`CLASSES`: name -> function of a size in bytes -> a file of about that size, and its name.
"""

from __future__ import annotations

from tests.extract.hostile_books import BOOKS, NOTEBOOKS, XML
from tests.extract.hostile_code import CODE, TEXT
from tests.extract.hostile_nesting import DEEP, TABLES
from tests.extract.hostile_pages import PAGES
from tests.extract.hostile_shapes import Hostile
from tests.extract.hostile_texts import MARKDOWN, RST

CLASSES: dict[str, Hostile] = {
    **PAGES, **DEEP, **TABLES, **MARKDOWN, **RST, **XML, **BOOKS, **NOTEBOOKS, **CODE, **TEXT,
}  # fmt: skip
