"""What a refresh would cost, before it is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from knowledge.changes import Change
from knowledge.model import DocumentRow
from knowledge.settings import ChunkingSettings

BATCH_API_SHARE = 0.5
"""price of embedding services' batch interfaces, relative to their ordinary one"""
CHARACTERS_PER_TOKEN = 4.0
_CHARACTERS_PER_BYTE = {".pdf": 0.15, ".docx": 0.1, ".pptx": 0.02, ".xlsx": 0.5, ".png": 0.0, ".jpg": 0.0, ".jpeg": 0.0}
"""of formats that are not plain text, until a corpus holds some of its own to go by"""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Upper estimate of a refresh; vectors that turn out to exist already make it cheaper."""

    chunks: int
    tokens: int
    cost_usd: float
    cost_usd_batch: float
    """through the service's batch interface"""


class Ratios:
    """How many characters a byte of a file gave, by extension: learned from published documents."""

    def __init__(self) -> None:
        self._characters: dict[str, int] = defaultdict(int)
        self._sizes: dict[str, int] = defaultdict(int)

    def learn(self, row: DocumentRow) -> None:
        if row.status == "indexed":
            extension = _extension(row.path)
            self._characters[extension] += row.characters
            self._sizes[extension] += row.size

    def of(self, path: str) -> float:
        extension = _extension(path)
        if size := self._sizes.get(extension):
            return self._characters[extension] / size
        return _CHARACTERS_PER_BYTE.get(extension, 1.0)


def estimate(
    changes: Iterable[Change],
    ratios: Ratios,
    chunking: ChunkingSettings,
    price: Callable[[str], float],
) -> Estimate:
    """Estimate from the sizes of what has to be done and from what documents of the same extension gave before.

    Args:
        changes: planned.
        ratios: characters per byte.
        chunking: chunk size.
        price: namespace -> US dollars per million tokens; asked only if there is something to embed.
    """
    by_namespace: dict[str, float] = defaultdict(float)
    for change in changes:
        base = change.base
        if change.effort == "rechunk" and base is not None:
            by_namespace[change.namespace] += base.characters
        elif change.effort == "extract" and change.item is not None:
            by_namespace[change.namespace] += change.item.size * ratios.of(change.item.path)
    size, overlap = _chunk_characters(chunking)
    characters, step = sum(by_namespace.values()), max(1, size - overlap)
    chunks = -(-characters // step)
    tokens = {namespace: share * size / step / CHARACTERS_PER_TOKEN for namespace, share in by_namespace.items()}
    cost = sum((share * price(namespace) / 1e6 for namespace, share in tokens.items() if share), 0.0)
    return Estimate(int(chunks), int(sum(tokens.values())), round(cost, 6), round(cost * BATCH_API_SHARE, 6))


def _chunk_characters(chunking: ChunkingSettings) -> tuple[float, float]:
    factor = CHARACTERS_PER_TOKEN if chunking.unit == "tokens" else 1.0
    return chunking.size * factor, chunking.overlap * factor


def _extension(path: str) -> str:
    return PurePosixPath(path).suffix.lower()
