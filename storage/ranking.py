"""The SQL that ranks: vectors exactly and in two stages, keywords by BM25. Text only; runs nothing.

Every statement reads the tables of the search index and a relation of the documents that may answer, and gives rows
`(chunk, doc, score)`: the best `limit` of them and all that tie with the last, so that who else is in the corpus never
decides which of two equal chunks is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

K1, B = 1.2, 0.75
"""parameters of BM25: saturation of term frequency, share of length normalisation (Robertson and Zaragoza 2009)"""
SCALE = 1 << 32
"""BM25 sums are kept as whole numbers of this fraction: their order of addition cannot change them"""


def hamming(columns: Sequence[str], values: Sequence[str]) -> str:
    """SQL of the number of bits in which codes differ.

    Args:
        columns: of the codes table.
        values: SQL of the words of the query's code.
    """
    # bit_count gives a TINYINT, whose sums overflow.
    return " + ".join(
        f"bit_count(xor({column}, {value}))::SMALLINT" for column, value in zip(columns, values, strict=True)
    )


def candidates(space: int, distance: str, limit: str, visible: str | None) -> str:
    """SQL of the chunks whose codes are nearest: the first of two stages.

    Args:
        space: number of the vector space.
        distance: SQL of the Hamming distance.
        limit: how many.
        visible: relation with a column `doc` of those that may answer; None for all.
    """
    join = f" JOIN {visible} USING (doc)" if visible else ""
    # One number holds distance and chunk: cheaper to sort than two columns, and ties have an order.
    return f"""SELECT chunk FROM parts.codes_{space}{join}
        ORDER BY (({distance})::BIGINT << 32) + chunk LIMIT {limit}"""


def vector_scores(space: int, query: str, visible: str | None, chosen: str | None) -> str:
    """SQL of `(chunk, doc, score)`: cosine similarity of chunks.

    Args:
        space: number of the vector space.
        query: SQL of the query's vector, `FLOAT[dimension]`.
        visible: relation with a column `doc` of those that may answer; None if `chosen` sees to that.
        chosen: relation with a column `chunk`, of the chunks to compare; None for all that are visible.
    """
    join = f" JOIN {visible} USING (doc)" if visible else ""
    restriction = f" AND c.rowid IN (SELECT chunk FROM {chosen})" if chosen else ""
    return f"""SELECT c.rowid AS chunk, doc, array_cosine_similarity(vector_{space}, {query})::DOUBLE AS score
        FROM parts.chunks AS c{join} WHERE vector_{space} IS NOT NULL{restriction}"""


def text_scores(terms: str, visible: str, chunks: str, mean: str) -> str:
    """SQL of `(chunk, doc, score)`: BM25 of chunks, its statistics taken over what is visible.

    Args:
        terms: SQL list or subquery for `IN`: numbers of the query's terms.
        visible: relation `(doc, copies)` of those that may answer; copies counts the documents of a revision.
        chunks: SQL of the number of visible chunks.
        mean: SQL of their mean length in tokens.
    """
    return f"""WITH hits AS MATERIALIZED (
            SELECT p.term, p.chunk, p.doc, p.tf, p.length, v.copies
            FROM parts.postings AS p JOIN {visible} AS v USING (doc) WHERE p.term IN ({terms})
        ), weights AS (
            SELECT term, ln(1 + ({chunks} - sum(copies) + 0.5) / (sum(copies) + 0.5)) AS idf FROM hits GROUP BY term
        )
        SELECT chunk, any_value(doc) AS doc, sum(round({SCALE} * idf * tf * {K1 + 1}
            / (tf + {K1} * ({1 - B} + {B} * length / {mean})))::BIGINT)::DOUBLE / {SCALE} AS score
        FROM hits JOIN weights USING (term) GROUP BY chunk"""


def best(scores: str, limit: str) -> str:
    """SQL of the rows of `scores` that are among the best `limit`, with all that tie with the last."""
    return f"""WITH scores AS MATERIALIZED ({scores})
        SELECT * FROM scores
        WHERE score >= (SELECT min(score) FROM (SELECT score FROM scores ORDER BY score DESC LIMIT {limit}))"""
