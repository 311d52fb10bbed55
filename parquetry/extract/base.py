"""The interface of all extractors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from parquetry.extract.readers import READERS
from parquetry.model import Extraction, RawDocument

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings


class Extractor(Protocol):
    """Converts documents of one format family to normalised text. Runs in a worker process that may be killed."""

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        """Extract one document.

        Raises:
            SkippedDocument: the document has no text.
            BrokenDocument: the document is damaged, locked or over a limit.
        """
        ...


class ListedExtractor:
    """Base of the extractors in `READERS`, which says what each reads and what its texts depend on."""

    id: str
    """name and version, as `text/5`; part of every document's fingerprint"""

    def __init_subclass__(cls) -> None:
        reader = READERS[f"{cls.__module__.removeprefix(f'{__package__}.')}:{cls.__name__}"]
        cls.id = f"{reader.name}/{reader.version}"
