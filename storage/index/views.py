"""Views and macros of the search index: plain SQL for any DuckDB from 1.4 on, without extensions.

The macros search documents; `parquetry search --type` finds entries, under the permissions of the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parquetry.ids import CHUNK_ID_SQL
from parquetry.model import SESSION_TYPE
from parquetry.ranking.fusion import VECTOR_WEIGHT
from parquetry.storage.files.layout import Table
from parquetry.storage.index.ranking import (
    best,
    candidates,
    distance,
    frequencies,
    inverse_frequency,
    query_weight,
    text_scores,
    vector_scores,
    with_identities,
)
from parquetry.storage.index.signatures import signature_columns
from parquetry.storage.lake.knowledge_views import IS_DOCUMENT, IS_ENTRY, SESSION_COLUMNS, entries_of

TWO_STAGE_ROWS = 50_000
"""number of vectors above which the macros search in two stages"""
TWO_STAGE_CANDIDATES = 1_000


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """A vector space of the index: the vectors of one embedder."""

    number: int
    embedder: str
    dimension: int
    rows: int
    """number of vectors"""
    mixed: bool = False
    """True if some of the vectors may be of entries, or of replaced revisions"""


_ENTRIES = f"(SELECT * FROM parts.documents WHERE {IS_ENTRY}) AS p JOIN parts.chunks AS t USING (doc)"
_DOCUMENTS = (
    "CREATE OR REPLACE VIEW published AS SELECT * EXCLUDE (doc, number) FROM parts.documents",
    f"CREATE OR REPLACE VIEW documents AS SELECT * EXCLUDE (doc, number) FROM parts.documents WHERE {IS_DOCUMENT}",
    f"CREATE OR REPLACE VIEW entries AS {entries_of(_ENTRIES)}",
    f"""CREATE OR REPLACE VIEW sessions AS SELECT {SESSION_COLUMNS} FROM parts.documents
    WHERE media_type = '{SESSION_TYPE}'""",
)

_EVERY_CHUNK = f"""CREATE OR REPLACE VIEW parts.every_chunk AS
SELECT {CHUNK_ID_SQL} AS chunk_id, d.document_id, d.namespace, d.source, d.uri, d.filename,
    d.title, c.chunk_index, c.kind, c.page, c.headings, c.start, c."end", c.text, c.tokens, c.text_hash, c.embedder,
    {{vector}} AS vector, c.revision, d.media_type
FROM parts.chunks AS c JOIN parts.documents AS d USING (doc)"""
_CHUNKS = f"""CREATE OR REPLACE VIEW chunks AS
SELECT * EXCLUDE (media_type) FROM parts.every_chunk WHERE {IS_DOCUMENT}"""

_COPIES: Mapping[Table, str] = {"runs": "FROM parts.runs", "failures": "FROM parts.failures"}

_SEARCHED = f"(SELECT * FROM parts.documents WHERE doc IS NOT NULL AND {IS_DOCUMENT})"
_VISIBLE = f"(SELECT doc, count(*) AS copies FROM {_SEARCHED} GROUP BY doc)"
_NUMBERED = f"(SELECT doc, number FROM {_SEARCHED})"
_LIVE = f"(SELECT DISTINCT doc FROM {_SEARCHED})"
_RESULT = f"""{CHUNK_ID_SQL} AS chunk_id, d.document_id, d.namespace, d.uri, d.filename,
    d.title, c.kind, c.page, c.headings, c.start, c."end", c.text"""
_ASKED = """asked AS MATERIALIZED (
        SELECT word, any_value(term) AS term, count(*) AS times, coalesce(bool_or(stop), false) AS stop
        FROM (SELECT unnest(tokens(query)) AS word) LEFT JOIN parts.words USING (word) GROUP BY word
    ), terms AS MATERIALIZED (
        SELECT term, sum(times) AS times FROM asked
        WHERE term IS NOT NULL AND (NOT stop OR (SELECT bool_and(stop) FROM asked)) GROUP BY term
    )"""
_CHUNK_COUNT = f"(SELECT sum(r.chunks) FROM {_SEARCHED} JOIN parts.revisions AS r USING (doc))"
_MEAN_LENGTH = f"(SELECT sum(r.length) / sum(r.chunks) FROM {_SEARCHED} JOIN parts.revisions AS r USING (doc))"


def statements(spaces: Sequence[VectorSpace], damaged: Mapping[Table, str]) -> list[str]:
    """Return the SQL statements that create the views and macros of an index.

    Args:
        spaces: vector spaces of the index. Vector-search macros are created for an index with one space; with several,
            each embedder's vectors are columns of `parts.chunks`.
        damaged: SQL that replaces a table of which the index has no copy.
    """
    copies = [f"CREATE OR REPLACE VIEW {table} AS {sql}" for table, sql in {**_COPIES, **damaged}.items()]
    made = [*_DOCUMENTS, *copies, _EVERY_CHUNK.format(vector=_vector(spaces)), _CHUNKS, _text_macro()]
    if len(spaces) == 1:
        made += [_vector_macro(spaces[0]), hybrid_macro(spaces[0], embeds=False)]
    return made


def _vector(spaces: Sequence[VectorSpace]) -> str:
    if len(spaces) == 1:
        return f"c.vector_{spaces[0].number}"
    # Vectors of several dimensions fit no single array type.
    each = [f"c.vector_{space.number}::FLOAT[]" for space in spaces]
    return f"coalesce({', '.join(each)})" if each else "NULL::FLOAT[]"


def _text_side(limit: str) -> str:
    holding = frequencies("SELECT term FROM terms", _VISIBLE)
    weight = f"{inverse_frequency(_CHUNK_COUNT, 'coalesce(holding, 0)')} * {query_weight('times')}"
    scores = best(with_identities(text_scores("weights", _MEAN_LENGTH, _VISIBLE), "weights", _NUMBERED), limit)
    return f"""WITH {_ASKED}, weights AS MATERIALIZED (
            SELECT term, {weight} AS weight FROM terms LEFT JOIN ({holding}) USING (term)
        ) SELECT * FROM ({scores})"""


def _vector_side(space: VectorSpace, limit: str, vector: str = "query_vector") -> str:
    # A subquery is computed once, whatever expression gives the vector.
    query = f"(SELECT {vector}::FLOAT[{space.dimension}])"
    if space.rows <= TWO_STAGE_ROWS:
        return best(vector_scores(space.number, query, _LIVE, None), limit)
    columns = signature_columns(space.dimension)
    signs, large = ([f"(SELECT {kind}_{column} FROM code)" for column in columns] for kind in ("sign", "large"))
    packed = ", ".join(
        f"coalesce(bit_or(mask) FILTER (word = {i} AND {condition}), 0) AS {kind}_{column}"
        for kind, condition in (("sign", "turned > 0"), ("large", "abs(turned) >= middle"))
        for i, column in enumerate(columns)
    )
    code = f"""turned AS MATERIALIZED (
            SELECT word, mask, array_inner_product(axis, {query}) AS turned FROM parts.rotation_{space.number}
        ), code AS MATERIALIZED (
            SELECT {packed} FROM turned, (SELECT median(abs(turned)) AS middle FROM turned)
        )"""
    nearest = candidates(
        space.number, distance(columns, signs, large), str(TWO_STAGE_CANDIDATES), _LIVE if space.mixed else None
    )
    scores = best(vector_scores(space.number, query, None, "nearest"), limit)
    return f"WITH {code}, nearest AS MATERIALIZED ({nearest}) SELECT * FROM ({scores})"


def _result(ranked: str, scores: str) -> str:
    return f"""SELECT {_RESULT}, {scores} FROM ({ranked}) AS r JOIN parts.documents AS d USING (doc)
    JOIN parts.chunks AS c ON c.chunk = r.chunk
    ORDER BY r.score DESC, d.document_id, c.chunk_index LIMIT k"""


def _text_macro() -> str:
    result = _result(_text_side("k"), "r.score")
    return f"CREATE OR REPLACE MACRO search_text(query, k := 10) AS TABLE {result}"


def _vector_macro(space: VectorSpace) -> str:
    result = _result(_vector_side(space, "k"), "r.score")
    return f"CREATE OR REPLACE MACRO search_vector(query_vector, k := 10) AS TABLE {result}"


def hybrid_macro(space: VectorSpace, *, embeds: bool, depth: int = 100, weight: float = VECTOR_WEIGHT) -> str:
    """Return the SQL that creates `search_hybrid`.

    Args:
        space: vector space of the index.
        embeds: True if there is a SQL function `embed`; creates a macro of the connection that accepts `(query, k)`
            too.
        depth: number of best chunks of each side that are fused.
        weight: weight of the vector side.
    """

    def normalised(side: str) -> str:
        return f"""SELECT chunk, doc, score, CASE WHEN high = low THEN 1 ELSE (score - low) / (high - low) END AS part
            FROM {side}_side, (SELECT min(score) AS low, max(score) AS high FROM {side}_side)"""

    def body(vector: str) -> str:
        ranked = f"""WITH vector_side AS MATERIALIZED ({_vector_side(space, str(depth), vector)}),
            text_side AS MATERIALIZED ({_text_side(str(depth))})
            SELECT chunk, coalesce(v.doc, t.doc) AS doc, v.score AS vector_score, t.score AS text_score,
                {weight} * coalesce(v.part, 0) + {1 - weight} * coalesce(t.part, 0) AS score
            FROM ({normalised("vector")}) AS v FULL JOIN ({normalised("text")}) AS t USING (chunk)"""
        return _result(ranked, "r.score, r.vector_score, r.text_score")

    made = f"(query, query_vector, k) AS TABLE {body('query_vector')}"
    if embeds:
        return f"CREATE OR REPLACE TEMP MACRO search_hybrid (query, k) AS TABLE {body('embed(query)')}, {made}"
    return f"CREATE OR REPLACE MACRO search_hybrid {made}"
