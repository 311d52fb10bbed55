"""Pages, e-books, notebooks, code and texts that are built to exhaust their reader, by class.

`CLASSES`: name -> function of a size in bytes -> a file of about that size, and its name.
"""

from __future__ import annotations

from tests.knowledge.extract.hostile_books import BOOKS, NOTEBOOKS, XML
from tests.knowledge.extract.hostile_code import CODE, TEXT
from tests.knowledge.extract.hostile_nesting import DEEP, TABLES
from tests.knowledge.extract.hostile_pages import PAGES
from tests.knowledge.extract.hostile_shapes import Hostile
from tests.knowledge.extract.hostile_texts import MARKDOWN, RST

CLASSES: dict[str, Hostile] = {
    **PAGES, **DEEP, **TABLES, **MARKDOWN, **RST, **XML, **BOOKS, **NOTEBOOKS, **CODE, **TEXT,
}  # fmt: skip
