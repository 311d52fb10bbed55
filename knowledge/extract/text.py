"""Plain text, in any encoding."""

from __future__ import annotations

from knowledge.errors import SkippedDocument
from knowledge.extract.builder import TextBuilder
from knowledge.extract.encoding import decode, replaced
from knowledge.model import Extraction, RawDocument
from knowledge.settings import ExtractionSettings


class PlainTextExtractor:
    """Reads plain text: notes, logs, READMEs, org files."""

    name = "text"
    version = 1
    media_types = frozenset({"text/plain"})
    settings_used: frozenset[str] = frozenset()

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        text, encoding = decode(document.content)
        builder = TextBuilder("text")
        if builder.text(text) is None:
            raise SkippedDocument("no-text", "the file holds only white space")
        return builder.build(
            title=None,
            metadata={"encoding": encoding},
            media_type=media_type,
            extractor=f"{self.name}/{self.version}",
            warnings=replaced(document.content, text, encoding),
        )
