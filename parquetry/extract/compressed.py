"""Compressed files: one document of any kind, packed with gzip, bzip2, xz or Zstandard."""

from __future__ import annotations

from contextvars import ContextVar
from io import BytesIO
from typing import TYPE_CHECKING

from parquetry.decompress import MAX_RATIO, is_bomb
from parquetry.errors import BrokenDocument, DocumentError
from parquetry.extract import media_types as kinds
from parquetry.extract.allowance import count_unpacked
from parquetry.extract.base import ListedExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.unpacking import DECOMPRESSION_ERRORS, pieces

if TYPE_CHECKING:
    from parquetry.settings.extraction import ExtractionSettings

_unpacking: ContextVar[bool] = ContextVar("unpacking", default=False)


class CompressedExtractor(ListedExtractor):
    """Reads the document in a compressed file, as if it had never been packed."""

    def extract(self, document: RawDocument, media_type: str, settings: ExtractionSettings) -> Extraction:
        from parquetry.extract.registry import extract

        if _unpacking.get():
            # Its inner one could be packed again, and so on without an end.
            raise BrokenDocument("nested-too-deep", "it is compressed again inside; unpack it once")
        content = _unpacked(document.content, kinds.COMPRESSED[media_type], settings.max_unpacked_bytes)
        count_unpacked(len(content))
        token = _unpacking.set(True)
        try:
            return extract(RawDocument(content, kinds.name_inside(document.filename)), settings)
        finally:
            _unpacking.reset(token)


def _unpacked(content: bytes, ending: str, most: int) -> bytes:
    unpacked: list[bytes] = []
    size = 0
    try:
        for piece in pieces(BytesIO(content), ending):
            size += len(piece)
            if size > most:
                raise BrokenDocument("too-large", f"unpacks to more than {most} bytes (max_unpacked_bytes)")
            if is_bomb(size, len(content)):
                raise BrokenDocument("too-large", f"unpacks to more than {MAX_RATIO} times its size")
            unpacked.append(piece)
    except DocumentError:
        raise
    except (*DECOMPRESSION_ERRORS, OSError, ValueError) as error:
        raise BrokenDocument("damaged", f"it cannot be unpacked: {error}") from error
    return b"".join(unpacked)
