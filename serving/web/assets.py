"""Files that pages load: styles, scripts and the icon, under names that change with their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "static"
PREFIX = "/static"
HTMX_SHA256 = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
"""of `dist/htmx.min.js` in the npm package htmx.org 2.0.11, licence 0BSD"""
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages load."""

    path: str
    """path in URLs"""
    content: bytes
    media_type: str


@cache
def assets() -> Mapping[str, Asset]:
    """Return all files by their name in the folder."""
    files = sorted(path for path in FOLDER.iterdir() if path.suffix in _TYPES)
    return {file.name: _asset(file) for file in files}


def _asset(file: Path) -> Asset:
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Asset(f"{PREFIX}/{file.stem}-{digest}{file.suffix}", content, _TYPES[file.suffix])
