"""A corpus that migrates to another embedder, and what is seen of it."""

from __future__ import annotations

from parquetry.flows.pipelines.migration import run_migration
from parquetry.flows.pipelines.migration_plan import (
    MigrationRequest,
)
from parquetry.flows.pipelines.observer import Observer
from parquetry.tasks.engine.base import DirectEngine
from tests.workshop import Workshop

NEW = "openai:tiny"
TO_NEW = (("corpus.embedder", NEW),)


def migration_workshop(place, server):
    """Return six published documents in several chunks each, embedded by the bundled model."""
    workshop = Workshop(place)
    workshop.sections |= {
        "chunking": {"size": 120, "overlap": 20},
        "embedding": {"base_url": server.url, "price_per_million_tokens": 1000.0},
        "refresh": {"batch_documents": 2},
    }
    for number in range(6):
        workshop.write(f"{number}.md", text_of(number))
    workshop.refresh()
    return workshop


def text_of(number, rules=9):
    return "\n\n".join(f"Rule {number}.{rule}: count the boards of oak twice." for rule in range(rules))


def migrate(workshop, values=(), action="build", settings=None):
    request = MigrationRequest(settings or workshop.settings, tuple(values), action)
    return run_migration(request, DirectEngine(), Observer())


def texts_sent(server):
    """Return every text that was embedded, except the queries and the word that tells the vectors' length."""
    asked = (text for request in server.requests for text in request.inputs)
    return [text for text in asked if "Rule" in text or "Order" in text]


def visible(workshop):
    """Return the visible chunks with their vectors, without the numbers of revisions and runs."""
    with workshop.reader() as reader:
        found = reader.query(
            'SELECT document_id, chunk_index, start, "end", headings, text, tokens, text_hash, embedder, vector '
            "FROM chunks ORDER BY ALL"
        )
    return found[1]


def embedders(workshop):
    return {row.embedder for row in workshop.rows().values()}
