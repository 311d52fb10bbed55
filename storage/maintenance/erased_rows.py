"""Rows that belong to a user or mention one, as SQL conditions over the tables. Text only; runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from parquetry.model import SESSION_TYPE, TRANSCRIPTS_TYPE
from parquetry.storage.files.layout import Table

USER = "erased_user"
"""SQL variable with the user's id"""
_IS_USER = f"= getvariable('{USER}')"
_OWN = f"coalesce(visibility = 'individual' AND user_id {_IS_USER}, false)"
"""condition on a row: only the user may see it"""
OWN_DOCUMENT = f"""({_OWN} OR coalesce(
    media_type IN ('{SESSION_TYPE}', '{TRANSCRIPTS_TYPE}') AND user_id {_IS_USER}, false))"""
"""condition on a row of `documents`: the user's documents, entries, sessions and session files"""
_OF_SESSION = f"coalesce(session_user {_IS_USER}, false)"
OWN_DECISION = f"({_OWN} OR ({_OF_SESSION} AND kind IN ('refused', 'quarantined')))"
"""condition on a row of `decisions`: about the user's own entries, or about candidates that became no entry"""


@dataclass(frozen=True, slots=True)
class Erased:
    """The data to erase from one table."""

    rows: str
    """condition on rows to delete"""
    blanked: str = "false"
    """condition on other rows, in which the values below are replaced"""
    values: Mapping[str, str] = field(default_factory=dict)
    """column -> SQL of the replacement value"""


ERASED: Mapping[Table, Erased] = {
    "failures": Erased(
        """((namespace, document_id) IN (SELECT namespace, document_id FROM own_documents)
        OR (document_id = '' AND (namespace, source) IN (SELECT namespace, source FROM own_sources)))"""
    ),
    "entries": Erased(_OWN),
    "decisions": Erased(
        OWN_DECISION,
        blanked=f"({_OF_SESSION} AND NOT {OWN_DECISION})",
        values={
            "session_id": "'erased'",
            "session_uri": "NULL",
            "session_user": "NULL",
            "evidence": "[]::VARCHAR[]",
            "text": "''",
            "reasoning": "''",
        },
    ),
    "documents": Erased(OWN_DOCUMENT),
    "texts": Erased("revision IN (SELECT revision FROM erased_revisions)"),
    "chunks": Erased("revision IN (SELECT revision FROM erased_revisions)"),
    "notes": Erased("revision IN (SELECT revision FROM erased_revisions)"),
}
"""in the order in which the tables are rewritten: rows that show the owner of others are erased after those"""

OWN_TABLES = (
    f"""CREATE TEMP TABLE own_documents AS
    SELECT DISTINCT namespace, document_id FROM document_history WHERE {OWN_DOCUMENT}""",
    f"""CREATE TEMP TABLE own_sources AS
    SELECT namespace, source FROM document_history GROUP BY ALL HAVING bool_and({OWN_DOCUMENT})""",
)
"""created before anything is erased"""
OWN_REVISIONS = f"SELECT DISTINCT revision FROM document_history WHERE revision <> 0 AND {OWN_DOCUMENT}"
"""texts to delete unless a row of another user names them, too"""
LEFT_ALONE = f"""SELECT DISTINCT namespace, sequence, run_id FROM all_decisions
SEMI JOIN (SELECT * FROM document_history WHERE {OWN_DOCUMENT}) USING (namespace, sequence, run_id)
ANTI JOIN (SELECT * FROM document_history WHERE NOT {OWN_DOCUMENT}) USING (namespace, sequence, run_id)
WHERE NOT {OWN_DECISION}"""
"""publishes with a decision that stays but without the row of `documents` that it needs to count"""
