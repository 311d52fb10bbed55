"""Six documents whose texts go through the batch API of a service, and what is there once all came back."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.batches import BatchRecords
from tests.servers.batch_server import BatchServer
from tests.workshop import Workshop

PRICE = 1000.0
"""US dollars per million tokens"""
WORDS = ("oak", "elm", "ash", "fir", "yew", "box")
TEXTS = [f"The {word} grows slowly." for word in WORDS]
KEY = "sk-secret-of-this-test-0123456789"
MOST = (len(TEXTS[0]) + 8) * PRICE / 2e6
"""maximum cost of a text in a batch, in US dollars"""


def batch_workshop(place: Path, server: BatchServer) -> Workshop:
    """Return a workshop of six documents whose texts go through the batch API of a server."""
    made = Workshop(place)
    embedding = {"base_url": server.url, "api_key": KEY, "dimension": 8, "attempts": 1}
    made.sections |= {
        "corpus": {"embedder": "openai:m"},
        "embedding": {**embedding, "price_per_million_tokens": PRICE},
        "batch_api": {"embedding": "always"},
        "refresh": {"attempts": 1},
    }
    for word, text in zip(WORDS, TEXTS, strict=True):
        made.write(f"{word}.md", text)
    return made


def records(workshop) -> BatchRecords:
    return BatchRecords(layout_of(workshop.settings.corpus.root))


def age(workshop, minutes: float = 11) -> None:
    """Move the times in the record back."""
    for file in Path(workshop.settings.corpus.root, "batches").glob("*.json"):
        told = json.loads(file.read_text())
        told["at"] = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()
        file.write_text(json.dumps(told))


def check_all_is_there(workshop, server, paid: list[str] = TEXTS) -> None:
    """Check that every document is published and found, and every text was paid for once."""
    assert sorted(workshop.rows()) == sorted(f"{word}.md" for word in WORDS)
    assert all(row.status == "indexed" for row in workshop.rows().values())
    assert server.charged() == Counter(paid)
    assert records(workshop).open() == []
    for word in WORDS:
        assert workshop.search(f"the {word} grows", mode="text").hits[0].row["text"] == f"The {word} grows slowly."
