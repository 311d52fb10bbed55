"""LaTeX: headings, text, lists, tables and formulas of a document, without comments and commands of layout."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parquetry.errors import SkippedDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder, normalise
from parquetry.extract.encoding import decode, replaced
from parquetry.extract.latex.commands import SECTIONS
from parquetry.extract.latex.parser import LatexReader
from parquetry.model import Extraction, RawDocument
from parquetry.plural import counted

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_BODY = re.compile(r"^[^%\n]{0,200}\\begin[ \t]*\{document\}", re.MULTILINE)
_MOST_NAMED = 3


class LatexExtractor(ListedExtractor):
    """Reads LaTeX without running it: commands are not expanded, and files that it includes are not read."""

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        """Extract one document, or the part of one.

        Raises:
            SkippedDocument: `no-text`.
        """
        text, encoding = decode(document.content)
        text = normalise(text, keep_layout=True)
        builder = TextBuilder()
        reader = LatexReader(text, builder, _outermost(text))
        body = _BODY.search(text)
        if body:
            reader.read_preamble(body.end())
        reader.read()
        warnings = list(replaced(document.content, text, encoding))
        if reader.files:
            named = ", ".join(reader.files[:_MOST_NAMED]) + (", ..." if len(reader.files) > _MOST_NAMED else "")
            many = counted(len(reader.files), "included file is", "included files are")
            warnings.append(f"{many} not read here: {named}")
        extraction = builder.build(
            title=reader.title or reader.first,
            metadata=reader.metadata,
            media_type=media_type,
            extractor=self.id,
            warnings=warnings,
        )
        if not extraction.text:
            raise SkippedDocument("no-text", "the file holds only commands and comments")
        return extraction


def _outermost(text: str) -> int:
    """Return the index in `SECTIONS` of the headings of level 1."""
    return next((n for n, name in enumerate(SECTIONS) if re.search(rf"\\{name}\*?[ \t]*[{{\[]", text)), 0)
