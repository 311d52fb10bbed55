"""The pages of the documentation and their content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
OWN_RULES = {
    f"docs/{page}.md" for page in ("chat", "deployments", "knowledge-api", "openai-stores", "prefect", "responses")
}
"""pages whose commands need a running server; other tests cover them"""
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        ROOT / "README.md",
        ROOT / "SECURITY.md",
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "examples" / "README.md",
    )
)
_BLOCK = re.compile(r"^```(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of code."""

    page: str
    line: int
    """1-based"""
    language: str
    code: str
    exempt: bool
    """True if the paragraph before it explains why it is not tested"""

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = text_of(page)
    return [
        Block(
            page,
            text.count("\n", 0, found.start()) + 1,
            found[1].strip(),
            found[2],
            "not under test" in text[: found.start()].rstrip().rpartition("\n\n")[2].casefold(),
        )
        for found in _BLOCK.finditer(text)
    ]


def prose_of(page: str) -> str:
    """Return a page without its fenced blocks."""
    return _BLOCK.sub("", text_of(page))


def links_of(page: str) -> Iterator[str]:
    """Return the targets of a page's links that stay within the repository."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if "://" not in target:
            yield target


def anchors_of(page: str) -> set[str]:
    """Return the possible link targets after `#`: headings in GitHub's spelling."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.casefold()).strip().replace(" ", "-") for heading in headings}
