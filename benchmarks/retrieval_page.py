"""Update of the tables in `docs/retrieval.md` from the latest results.

    python -m benchmarks.retrieval_page

Existing rows stay; their figures are read again from `benchmarks/results/retrieval.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.conditions import RESULTS, ROOT

PAGE = ROOT / "docs" / "retrieval.md"
EMBEDDER = "wordllama"
Figures = Callable[[str], Sequence[str]]
"""first cell of a row -> its other cells"""


def tables(result: dict[str, Any]) -> dict[str, Figures]:
    """Return the row contents for each table of the page, by header line."""
    means = {(row["table"], row["setting"]): f"{row['mean']:.3f}" for row in result["sweep"]}

    def collection(name: str) -> Sequence[str]:
        measured = result["modes"][EMBEDDER][name]
        ndcg = [f"{measured[mode]['ndcg']:.3f}" for mode in ("vector", "text", "hybrid")]
        return [f"{measured['documents']:,}", str(measured["queries"]), *ndcg]

    def setting(name: str) -> Sequence[str]:
        if name == "as shipped":
            return [means["sides", "text"], means["sides", "hybrid"]]
        return [means["keywords, text", name], means["keywords, hybrid", name]]

    def fusion(name: str) -> Sequence[str]:
        kind, _, parameters = name.partition(", ")
        return [means[kind, parameters]]

    return {
        "| collection | documents | queries | vector | text | hybrid |": collection,
        "| setting | text | hybrid |": setting,
        "| fusion | mean of hybrids |": fusion,
    }


def refreshed(page: str, result: dict[str, Any]) -> str:
    """Return the page with the figures of a result."""
    known = tables(result)
    figures: Figures | None = None
    lines = []
    for line in page.split("\n"):
        if not line.startswith("|"):
            figures = None
        elif line in known:
            figures = known[line]
        elif figures is not None and not line.startswith("|---"):
            name = line.strip("| ").partition(" | ")[0]
            line = f"| {' | '.join([name, *figures(name)])} |"
        lines.append(line)
    return "\n".join(lines)


def main() -> None:
    result = json.loads((RESULTS / "retrieval.json").read_text("utf-8"))
    PAGE.write_text(refreshed(PAGE.read_text("utf-8"), result), "utf-8")
    print(f"figures of {result['conditions']['date']} are in {PAGE}")


if __name__ == "__main__":
    main()
