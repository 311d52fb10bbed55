"""The words of the search index: the term of each word, and the frequency of each term in each chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from parquetry.language.stems import stemmer, stop_words
from parquetry.storage.database import Connection, commit_part, tuples
from parquetry.storage.index.tokens import CHUNK_CONTENT, CHUNK_HEADINGS, HEADING_EXTRA, tokenised
from parquetry.storage.index.waiting import WaitingRows, waiting_rows

SLICE = 8_000
"""number of chunks processed at a time"""
FEW_SLICES = 24
"""number of slices whose rows need no files to wait in"""


def count_words(connection: Connection, first: int, end: int, language: str, *, may_spill: bool) -> None:
    """Count the words of new chunks, and write the lengths of their revisions to a temporary table `lengths`.

    What was done for some thousand chunks is committed before the next.

    Args:
        connection: connection with the index as current database.
        first: number of the first new chunk.
        end: one more than that of the last one.
        language: language of the words.
        may_spill: True if rows of many chunks may wait in files, in the folder where DuckDB spills.
    """
    connection.execute("CREATE OR REPLACE TEMP TABLE lengths (doc INTEGER, length BIGINT)")
    initial = count_of(connection, "SELECT count(*) FROM segment.postings") == 0
    in_files = may_spill and end - first > FEW_SLICES * SLICE
    with waiting_rows(connection, "segment.postings", in_files=in_files) as postings:
        for low, high in slices(connection, first, end):
            _count_slice(connection, f"chunk >= {low} AND chunk < {high}", language, postings)
        postings.sort_into_index("chunk", first)
    if initial:
        connection.execute("DELETE FROM parts.meta WHERE key = 'sorted_postings'")
        connection.execute("INSERT INTO parts.meta SELECT 'sorted_postings', count(*)::VARCHAR FROM segment.postings")
    for table in ("tokenised", "occurrences", "known", "sizes"):
        connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


def _count_slice(connection: Connection, those: str, language: str, postings: WaitingRows) -> None:
    """Count the words of some chunks.

    Args:
        connection: connection with the index as current database.
        those: condition over `chunk`.
        language: language of the words.
        postings: receives the rows.
    """
    # Both in one statement: DuckDB takes 10 ms to prepare the patterns of the tokeniser, each time.
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE tokenised AS
        WITH fresh AS (
            SELECT chunk, doc, text, headings FROM segment.chunks WHERE {those}
        ), contents AS MATERIALIZED (
            SELECT chunk, doc, true AS is_text, {CHUNK_CONTENT} AS content FROM fresh
            UNION ALL SELECT chunk, doc, false, {CHUNK_HEADINGS} FROM fresh
        ) {tokenised("contents")}"""
    )
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE occurrences AS
        SELECT chunk, word, sum(CASE WHEN is_text THEN 1 ELSE {HEADING_EXTRA} END) AS tf
        FROM (SELECT chunk, is_text, unnest(tokens) AS word FROM tokenised) GROUP BY ALL"""
    )
    learn_new(connection, language)
    # Without the lists, which would slow down every join.
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE sizes AS
        SELECT chunk, doc, len(tokens)::INTEGER AS length FROM tokenised WHERE is_text"""
    )
    postings.add(
        """SELECT term, chunk, doc, tf, length FROM (
            SELECT w.term, o.chunk, sum(o.tf)::INTEGER AS tf
            FROM occurrences AS o JOIN known AS w USING (word) GROUP BY ALL
        ) JOIN sizes USING (chunk)"""
    )
    connection.execute("INSERT INTO lengths SELECT doc, sum(length) FROM sizes GROUP BY doc")


def learn_new(connection: Connection, language: str) -> None:
    """Assign terms to the words of the temporary table `occurrences` that the index does not know yet.

    The rows of `parts.words` for all words of the table are written to a temporary table `known`: those of the whole
    index are looked through once.
    """
    connection.execute("CREATE OR REPLACE TEMP TABLE asked AS SELECT DISTINCT word FROM occurrences")
    connection.execute("CREATE OR REPLACE TEMP TABLE known AS FROM parts.words SEMI JOIN asked USING (word)")
    found = tuples(connection, "FROM asked ANTI JOIN known USING (word) ORDER BY word")
    if found:
        learn_words(connection, [word for (word,) in found], language)
        connection.execute("INSERT INTO known FROM taught")
    connection.execute("DROP TABLE temp.asked")


def learn_words(connection: Connection, words: Sequence[str], language: str) -> None:
    """Assign terms to words that the index does not know yet: words of one stem share a term.

    The new rows of `parts.words` are also in a temporary table `taught`.
    """
    import pyarrow as pa

    if not words:
        return
    stems = stems_of(words, language)
    stops = stop_words(language)
    learned = {"word": words, "stem": stems, "stop": [word in stops for word in words]}
    connection.register("learned", pa.table(learned))
    connection.execute(
        """INSERT INTO parts.terms
        SELECT (row_number() OVER (ORDER BY stem) + (SELECT count(*) FROM parts.terms) - 1)::INTEGER, stem
        FROM (SELECT DISTINCT stem FROM learned) ANTI JOIN parts.terms USING (stem)"""
    )
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE taught AS
        SELECT l.word, t.term, l.stop FROM learned AS l JOIN parts.terms AS t USING (stem)"""
    )
    connection.execute("INSERT INTO parts.words FROM taught")
    connection.unregister("learned")


def stems_of(words: Sequence[str], language: str) -> list[str]:
    """Return the stem of each token; identifiers and numbers are their own stems."""
    stem = stemmer(language)
    stemmed = stem(words)
    return [reduced if word.isalpha() else word for word, reduced in zip(words, stemmed, strict=True)]


def slices(connection: Connection, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of chunk numbers, from one to before another; what was done for one is committed before the next."""
    for start in range(first, end, SLICE):
        if start > first:
            commit_part(connection)
        yield start, min(start + SLICE, end)


def count_of(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> int:
    """Return the single number that a query returns."""
    ((value,),) = tuples(connection, sql, parameters)
    return int(value)
