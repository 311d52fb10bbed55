"""Which rows tell of a user, as SQL conditions over the tables. Text only; runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from parquetry.model import SESSION_TYPE, TRANSCRIPTS_TYPE
from parquetry.storage.files.layout import Table

USER = "erased_user"
"""SQL variable that holds the user's id"""
_IS_USER = f"= getvariable('{USER}')"
_OWN = f"coalesce(visibility = 'individual' AND user_id {_IS_USER}, false)"
"""what only the user may see"""
OWN_DOCUMENT = f"""({_OWN} OR coalesce(
    media_type IN ('{SESSION_TYPE}', '{TRANSCRIPTS_TYPE}') AND user_id {_IS_USER}, false))"""
"""row of `documents`: the user's documents, entries, sessions and files of sessions"""
_OF_SESSION = f"coalesce(session_user {_IS_USER}, false)"
OWN_DECISION = f"({_OWN} OR ({_OF_SESSION} AND kind IN ('refused', 'quarantined')))"
"""row of `decisions`: about the user's own entries, and about what never became one"""


@dataclass(frozen=True, slots=True)
class Erased:
    """What is erased from one table."""

    rows: str
    """condition on a row that leaves"""
    blanked: str = "false"
    """condition on another row, that loses the values below"""
    values: Mapping[str, str] = field(default_factory=dict)
    """column -> SQL of what stands there instead"""


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
"""in the order in which the tables are rewritten: what tells whose something is goes after what is found by it"""

OWN_TABLES = (
    f"""CREATE TEMP TABLE own_documents AS
    SELECT DISTINCT namespace, document_id FROM document_history WHERE {OWN_DOCUMENT}""",
    f"""CREATE TEMP TABLE own_sources AS
    SELECT namespace, source FROM document_history GROUP BY ALL HAVING bool_and({OWN_DOCUMENT})""",
)
"""made before anything is erased"""
OWN_REVISIONS = f"SELECT DISTINCT revision FROM document_history WHERE revision <> 0 AND {OWN_DOCUMENT}"
"""texts that leave unless somebody else's row names them, too"""
LEFT_ALONE = f"""SELECT DISTINCT namespace, sequence, run_id FROM all_decisions
SEMI JOIN (SELECT * FROM document_history WHERE {OWN_DOCUMENT}) USING (namespace, sequence, run_id)
ANTI JOIN (SELECT * FROM document_history WHERE NOT {OWN_DOCUMENT}) USING (namespace, sequence, run_id)
WHERE NOT {OWN_DECISION}"""
"""publishes of which a decision stays, and no row of `documents`, without which it would not count"""
