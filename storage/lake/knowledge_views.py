"""SQL of the views that separate documents from knowledge, and knowledge from its history. Runs nothing.

Entries and chat sessions are rows of the table `documents` like documents. Code that handles documents reads the view
`documents`, which leaves them out.
"""

from __future__ import annotations

from parquetry.model import ENTRY_TYPE, KNOWLEDGE_TYPES, SESSION_TYPE, What

_TYPES = ", ".join(f"'{media_type}'" for media_type in KNOWLEDGE_TYPES)
IS_DOCUMENT = f"(media_type IS NULL OR media_type NOT IN ({_TYPES}))"
"""condition on a row of `documents`"""
IS_KNOWLEDGE = f"(media_type IS NOT NULL AND media_type IN ({_TYPES}))"
IS_ENTRY = f"(media_type IS NOT NULL AND media_type = '{ENTRY_TYPE}')"


def answers(what: What) -> str:
    """Return the condition on a row of `documents` for the content type of a search."""
    return {"documents": IS_DOCUMENT, "entries": IS_ENTRY, "both": f"({IS_DOCUMENT} OR {IS_ENTRY})"}[what]


_TOLD = "json_extract_string(p.metadata, '$.{}')"
ENTRY_COLUMNS = f"""p.document_id AS entry_id, p.namespace, {_TOLD.format("kind")} AS kind, t.text, p.visibility,
    p.org_id, p.user_id, p.tags, {_TOLD.format("confidence")}::DOUBLE AS confidence,
    {_TOLD.format("valid_from")}::TIMESTAMPTZ AS valid_from, {_TOLD.format("sessions")}::INTEGER AS sessions,
    coalesce(string_split({_TOLD.format("contradicts")}, ' '), []::VARCHAR[]) AS contradicts, p.created_at,
    p.modified_at AS last_said"""
"""columns of the views about entries; from `p`, a row of `documents`, and `t`, which holds the text"""


def entries_of(relation: str) -> str:
    """Return SQL of the live entries, with the time until which each was true before an entry contradicted it.

    Args:
        relation: relation that `ENTRY_COLUMNS` are taken from.
    """
    return f"""WITH live AS (SELECT {ENTRY_COLUMNS} FROM {relation}), opposed AS (
        SELECT o.namespace, o.entry_id, min(later.valid_from) AS valid_until
        FROM (SELECT namespace, entry_id, valid_from, unnest(contradicts) AS other FROM live) AS o
        JOIN live AS later ON later.namespace = o.namespace AND later.entry_id = o.other
            AND later.valid_from > o.valid_from
        GROUP BY o.namespace, o.entry_id
    ) SELECT live.*, opposed.valid_until FROM live LEFT JOIN opposed USING (namespace, entry_id)"""


SESSION_COLUMNS = """document_id AS session_id, namespace, source, uri, path, title, visibility, org_id, user_id,
    status, error, metadata, modified_at, created_at, indexed_at, run_id"""

ENTRY_TEXTS = """(SELECT namespace, entry_id, any_value(text) AS text FROM all_entries GROUP BY namespace, entry_id)"""

_LIVE = f"""(SELECT * FROM published WHERE {IS_ENTRY}) AS p
    JOIN {ENTRY_TEXTS} AS t ON t.namespace = p.namespace AND t.entry_id = p.document_id"""

DOCUMENT_VIEWS = (
    f"CREATE VIEW documents AS SELECT * FROM published WHERE {IS_DOCUMENT}",
    f"CREATE VIEW entries AS {entries_of(_LIVE)}",
    f"CREATE VIEW sessions AS SELECT {SESSION_COLUMNS} FROM published WHERE media_type = '{SESSION_TYPE}'",
)
"""over `published`: every current row"""


def ledger_views() -> list[str]:
    """Return SQL of `entry_history` and `decisions`, over `document_history`, `all_entries` and `all_decisions`.

    A row of `decisions` counts only if its publish landed: the run that wrote it published that number of its
    namespace. Rows that the run wrote for an attempt that met a conflict have an earlier base.
    """
    return [
        f"""CREATE VIEW entry_history AS
        SELECT {ENTRY_COLUMNS}, NOT p.removed AS live, p.sequence, p.indexed_at AS at, p.run_id
        FROM (SELECT * FROM document_history WHERE {IS_ENTRY}) AS p
        JOIN {ENTRY_TEXTS} AS t ON t.namespace = p.namespace AND t.entry_id = p.document_id""",
        """CREATE VIEW decisions AS
        WITH RECURSIVE counted AS MATERIALIZED (
            SELECT * FROM all_decisions SEMI JOIN document_history USING (namespace, sequence, run_id)
            QUALIFY base = max(base) OVER (PARTITION BY namespace, sequence, run_id)
        ), latest AS (
            SELECT undoes, arg_max(decision_id, (sequence, number)) AS undone_by FROM counted
            WHERE undoes IS NOT NULL GROUP BY undoes
        ), chain AS (
            SELECT undoes AS decision_id, undone_by, undone_by AS last, 1 AS length FROM latest
            UNION ALL
            SELECT c.decision_id, c.undone_by, l.undone_by, c.length + 1 FROM chain AS c JOIN latest AS l
            ON l.undoes = c.last
        ), undone AS (
            SELECT decision_id, any_value(undone_by) AS undone_by FROM chain GROUP BY decision_id
            HAVING max(length) % 2 = 1
        )
        SELECT c.* EXCLUDE (base), u.undone_by FROM counted AS c LEFT JOIN undone AS u USING (decision_id)""",
    ]
