"""The parts of a Word document, and its texts outside the main flow."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from parquetry.errors import BrokenDocument
from parquetry.extract.docx.styles import attribute
from parquetry.extract.package import Package
from parquetry.extract.page_numbers import without_page_number

_HTML_CHUNK = re.compile(r"\.(x?html?|xht)$", re.IGNORECASE)


class WordParts:
    """Finds the parts of a Word document by the relations of its main part.

    Args:
        package: the document.

    Raises:
        BrokenDocument: the main part is missing or damaged.
    """

    def __init__(self, package: Package) -> None:
        self._package = package
        self._main = self._main_part()
        self._targets = self._relations()
        self.root = package.xml(self._main)
        """root element of the main part"""

    def part(self, kind: str, relation: str | None = None) -> Any:
        """Return the root of a part.

        Args:
            kind: last segment of the relation's type: `styles`, `footnotes`, `chart`.
            relation: id of the relation, for kinds with several parts.

        Returns:
            An lxml element, or None if there is no such part.
        """
        for found, name in self._targets.get(kind, ()):
            if relation in (None, found) and name in self._package:
                return self._package.xml(name)
        return None

    def notes(self, kind: str) -> dict[str, str]:
        """Return the texts of the notes of a kind (`footnotes`, `endnotes`) by note id."""
        root = self.part(kind)
        return {} if root is None else {attribute(note, "id") or "": words(note) for note in root}

    def comments(self) -> list[str]:
        """Return the reviewers' comments, each after its author."""
        root = self.part("comments")
        comments = []
        for comment in root.iter("{*}comment") if root is not None else ():
            if text := words(comment):
                author = attribute(comment, "author")
                comments.append(f"{author}: {text}" if author else text)
        return comments

    def running_heads(self) -> list[str]:
        """Return the distinct texts of page headers and footers, without those that only number pages."""
        texts: dict[str, None] = {}
        for kind in ("header", "footer"):
            for name in dict.fromkeys(name for _, name in self._targets.get(kind, ())):
                if name not in self._package:
                    continue
                root = self._package.xml(name)
                for fallback in list(root.iter("{*}Fallback")):
                    fallback.getparent().remove(fallback)
                for paragraph in root.iter("{*}p"):
                    if text := without_page_number(words(paragraph)):
                        texts[text] = None
        return list(texts)

    def html_chunks(self) -> tuple[list[bytes], int]:
        """Return the HTML pages embedded by other programs, and the number of chunks in other formats."""
        names = list(dict.fromkeys(name for _, name in self._targets.get("aFChunk", ())))
        pages = [self._package.read(name) for name in names if _HTML_CHUNK.search(name) and name in self._package]
        return pages, len(names) - len(pages)

    def _main_part(self) -> str:
        if "_rels/.rels" in self._package:
            for relation in self._package.xml("_rels/.rels").iter("{*}Relationship"):
                if (relation.get("Type") or "").endswith("/officeDocument"):
                    name = (relation.get("Target") or "").lstrip("/")
                    if name in self._package:
                        return name
        if "word/document.xml" not in self._package:
            raise BrokenDocument("damaged", "the archive holds no Word document")
        return "word/document.xml"

    def _relations(self) -> dict[str, list[tuple[str, str]]]:
        """Map each kind of part to the id and name of every such part that the main part references."""
        folder, name = posixpath.split(self._main)
        relations = f"{folder}/_rels/{name}.rels"
        found: dict[str, list[tuple[str, str]]] = {}
        for relation in self._package.xml(relations).iter("{*}Relationship") if relations in self._package else ():
            if relation.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/" + folder, relation.get("Target") or ""))
                kind = (relation.get("Type") or "").rpartition("/")[2]
                found.setdefault(kind, []).append((relation.get("Id") or "", target.lstrip("/")))
        return found


def words(element: Any) -> str:
    """Return the text of an element on one line, without deleted words."""
    nodes = element.iter("{*}t", "{*}tab", "{*}br", "{*}p")
    return " ".join("".join((node.text or "") if node.tag.endswith("}t") else " " for node in nodes).split())
