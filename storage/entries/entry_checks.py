"""Invariants of entries and decisions, as SQL that returns one row for each violation. Runs nothing."""

from __future__ import annotations

from parquetry.storage.lake.knowledge_views import IS_ENTRY

OTHERWISE = f"""SELECT coalesce(a.namespace, p.namespace) AS namespace, coalesce(a.entry_id, p.entry_id) AS entry_id,
    p.entry_id IS NOT NULL AS live FROM (
    SELECT namespace, entry_id, arg_max(live, (sequence, number, live::INTEGER)) AS live FROM (
        SELECT namespace, sequence, number, unnest(adds) AS entry_id, true AS live FROM decisions
        UNION ALL
        SELECT namespace, sequence, number, unnest(retires), false FROM decisions
    ) GROUP BY namespace, entry_id
) AS a FULL JOIN (
    SELECT namespace, document_id AS entry_id FROM published WHERE {IS_ENTRY}
) AS p USING (namespace, entry_id)
WHERE coalesce(a.live, false) <> (p.entry_id IS NOT NULL)"""
"""entries whose live state differs from what the decisions imply"""

ENTRY_CHECKS = (
    (
        "entry-not-made",
        "entries are live that were never written to `entries`",
        f"""SELECT path FROM published AS p WHERE {IS_ENTRY} AND NOT EXISTS (
            SELECT 1 FROM all_entries AS e WHERE e.namespace = p.namespace AND e.entry_id = p.document_id
        )""",
    ),
    (
        "entry-text",
        "entries say something else in `entries` than in their chunk",
        f"""SELECT p.path FROM (SELECT * FROM published WHERE {IS_ENTRY}) AS p
        JOIN all_entries AS e ON e.namespace = p.namespace AND e.entry_id = p.document_id
        JOIN all_chunks AS c ON c.revision = p.revision WHERE c.text <> e.text""",
    ),
    (
        "decision-about-nothing",
        "decisions name entries that were never published",
        f"""SELECT decision_id FROM (
            SELECT decision_id, namespace, unnest(list_concat(adds, retires)) AS entry_id FROM decisions
        ) ANTI JOIN (
            SELECT namespace, document_id AS entry_id FROM document_history WHERE {IS_ENTRY}
        ) USING (namespace, entry_id) GROUP BY decision_id""",
    ),
    (
        "entry-standing",
        "entries are live though a decision retired them last, or are not though one added them last",
        f"SELECT entry_id FROM ({OTHERWISE})",
    ),
)
"""name, description of the violation, and SQL over the views of `connect_snapshot` with an example in the first
column"""
