"""Ranking SQL: exact and two-stage vector search, and BM25 for keywords. Text only; runs nothing.

Every statement reads the tables of the search index and a relation of the documents that may answer, and returns rows
`(chunk, doc, score)`: the best `limit` and all that tie with the last, so that the rest of the corpus never decides
which of two equal chunks is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

K1, B = 1.5, 0.5
"""parameters of BM25: saturation of term frequency, share of length normalisation (Robertson and Zaragoza 2009).
Chunks are cut to about one size, so their length means less than a document's; these values were the best on average
of those tried, with a margin around them (`benchmarks/results/retrieval.json`)"""
K3 = 8.0
"""parameter of Okapi BM25: saturation of a word's frequency in the query, which matters where the query is a page"""
IDENTITY_SHARE = 0.8
"""share of the score of a document's identity that is added to the keyword score of each of its chunks; chosen on
half of the made annual reports, with no more than 0.003 lost on any collection (`benchmarks/README.md`)"""
SCALE = 1 << 32
"""denominator of BM25 sums, which are kept as integers so that the order of addition cannot change them"""


def distance(columns: Sequence[str], signs: Sequence[str], large: Sequence[str]) -> str:
    """Return SQL of the Hamming distance between codes and a query's code, over its more significant half of bits.

    The sign of a query coordinate near zero carries little information. Leaving these out finds with 500 candidates
    what all bits find with 1,000 to 2,000, without extra storage (`benchmarks/README.md`).

    Args:
        columns: columns of the codes table.
        signs: SQL of the words of the query's code.
        large: SQL of the words that mark its large coordinates.
    """
    # As FLOAT: bit_count returns a TINYINT, whose sums overflow, and integer sums are checked for overflow one by one.
    return " + ".join(
        f"bit_count(xor({column}, {sign}) & {mark})::FLOAT"
        for column, sign, mark in zip(columns, signs, large, strict=True)
    )


def candidates(space: int, apart: str, limit: str, visible: str | None) -> str:
    """Return SQL of the chunks with the nearest codes: the first of two stages.

    Args:
        space: number of the vector space.
        apart: SQL of the distance, less than 2^20.
        limit: SQL of the number of chunks.
        visible: relation with a column `doc` of the documents that may answer; None for all.
    """
    join = f" JOIN {visible} USING (doc)" if visible else ""
    # One number holds distance and chunk exactly: cheaper to sort than two columns, and it orders ties.
    return f"""SELECT chunk FROM parts.codes_{space}{join}
        ORDER BY ({apart})::DOUBLE * 2147483648 + chunk LIMIT {limit}"""


def vector_scores(space: int, query: str, visible: str | None, chosen: str | None) -> str:
    """Return SQL of `(chunk, doc, score)`, the score being the cosine similarity of the chunk.

    Args:
        space: number of the vector space.
        query: SQL of the query's vector, `FLOAT[dimension]`.
        visible: relation with a column `doc` of the documents that may answer; None if `chosen` is restricted to them.
        chosen: relation with a column `chunk`, of the chunks to compare; None for all that are visible.
    """
    join = f" JOIN {visible} USING (doc)" if visible else ""
    restriction = f" AND c.chunk IN (SELECT chunk FROM {chosen})" if chosen else ""
    return f"""SELECT c.chunk, doc, array_cosine_similarity(vector_{space}, {query})::DOUBLE AS score
        FROM parts.chunks AS c{join} WHERE vector_{space} IS NOT NULL{restriction}"""


def query_weight(occurrences: str) -> str:
    """Return SQL of the weight of a word by its number of occurrences in the query; 1 for one occurrence."""
    return f"{occurrences} * {K3 + 1} / ({occurrences} + {K3})"


def inverse_frequency(chunks: str, holding: str) -> str:
    """Return SQL of the inverse document frequency of a term.

    Args:
        chunks: SQL of the number of visible chunks.
        holding: SQL of the number of them that hold the term.
    """
    return f"ln(1 + ({chunks} - {holding} + 0.5) / ({holding} + 0.5))"


def frequencies(terms: str, visible: str | None) -> str:
    """Return SQL of `(term, holding)`: the number of visible chunks that hold each term of a query.

    Args:
        terms: SQL of `(term)`: numbers of the terms, each once. They are joined: `IN` compares each posting with each.
        visible: relation `(doc, copies)` of the documents that may answer, `copies` being the number of documents of a
            revision; None if each posting belongs to exactly one visible document.
    """
    if visible is None:
        return f"SELECT term, count(*) AS holding FROM parts.postings JOIN ({terms}) USING (term) GROUP BY term"
    return f"""SELECT term, sum(copies)::BIGINT AS holding
        FROM parts.postings JOIN ({terms}) USING (term) JOIN {visible} USING (doc) GROUP BY term"""


def text_scores(weights: str, mean: str, visible: str | None) -> str:
    """Return SQL of `(chunk, doc, score)`, the score being BM25, for the chunks that hold a term of a query.

    Args:
        weights: relation `(term, weight)`: the terms with their inverse frequency times their weight in the query.
        mean: SQL of the mean length of the visible chunks, in tokens.
        visible: as for `frequencies`.
    """
    join = f" JOIN {visible} USING (doc)" if visible else ""
    norm = f"tf + {K1 * (1 - B)}::FLOAT + ({K1 * B} / {mean})::FLOAT * length"
    return f"""SELECT chunk, any_value(doc) AS doc,
            sum((weight::FLOAT * {SCALE * (K1 + 1)}::FLOAT * tf / ({norm}))::BIGINT)::DOUBLE / {SCALE} AS score
        FROM parts.postings JOIN {weights} USING (term){join} GROUP BY chunk"""


def identity_parts(weights: str) -> str:
    """Return SQL of `(document, part)`: what each word of a query adds to the score of an identity, times `SCALE`.

    Args:
        weights: relation `(term, weight)` as for `text_scores`, with the terms that no visible chunk holds.
    """
    return f"""SELECT document, (asked.weight::FLOAT * {SCALE}::FLOAT * held.weight)::BIGINT AS part
        FROM parts.identities AS held JOIN {weights} AS asked USING (term)"""


def with_identities(scores: str, weights: str, visible: str) -> str:
    """Return SQL of `(chunk, doc, score)` with the share of each revision's identity added to the score.

    Args:
        scores: SQL of `text_scores`.
        weights: as for `identity_parts`.
        visible: relation `(doc, number)` of the documents that may answer; the best of those of a revision counts.
    """
    return f"""SELECT chunk, doc, s.score + {IDENTITY_SHARE} * coalesce(i.score, 0) AS score
        FROM ({scores}) AS s LEFT JOIN (
            SELECT doc, max(score) AS score FROM (
                SELECT document AS number, sum(part)::DOUBLE / {SCALE} AS score
                FROM ({identity_parts(weights)}) GROUP BY document
            ) JOIN {visible} USING (number) GROUP BY doc
        ) AS i USING (doc)"""


def best(scores: str, limit: str) -> str:
    """Return SQL of the rows of `scores` among the best `limit`, with all that tie with the last."""
    return f"""WITH scores AS MATERIALIZED ({scores})
        SELECT * FROM scores
        WHERE score >= (SELECT min(score) FROM (SELECT score FROM scores ORDER BY score DESC LIMIT {limit}))"""
