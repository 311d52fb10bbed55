"""The identity of each document: the words of its file name, its title, and the opening of its text.

A chunk in the middle of a report names neither the company nor the year. The keyword score of a chunk has a share of
the score of its document's identity (docs/decisions/0051-identity-of-the-document.md). Identities belong to documents
rather than to revisions: documents with one text may have names that not every caller may see.
"""

from __future__ import annotations

from collections.abc import Mapping

from parquetry.storage.database import Connection, commit_part, tuples
from parquetry.storage.index.tokens import CHUNK_CONTENT, tokenised
from parquetry.storage.index.waiting import WaitingRows, waiting_rows
from parquetry.storage.index.words import FEW_SLICES, SLICE, count_of, learn_new

OPENING = 300
"""characters at the beginning of a text that tell what it is"""
_OPENED_SLICES = 12
"""slices whose openings are read together"""
_NO_NAME = (
    r"(?i)[\d\W_]*|untitled.*|document[ \d]*|microsoft (word|excel|powerpoint)\b.*|"
    r".*\.(docx?|xlsx?|pptx?|pdf|indd|qxd)"
)
"""names and titles that tell nothing: accession numbers, placeholders, and those that a program made"""
_CUT = rf"""CASE WHEN length(content) <= {OPENING} THEN content
    ELSE regexp_replace(left(content, {OPENING}), '\S*$', '') END"""
"""SQL of the opening, up to the last whole word"""
_KEY = "namespace, document_id"
_CONTENT = "revision, filename, title"
"""columns that an identity is made of; a revision has one text"""
_MOST = {"opening": 2}
"""times that a word of a field counts at most; 1 for other fields"""


def identity_contents(documents: str, openings: str | None = None) -> str:
    """Return SQL of `(number, field, content)`: what identities are made of; `field` is `name`, `title` or `opening`.

    Args:
        documents: relation `(number, doc, filename, title)`.
        openings: relation `(doc, chunk_index, content)` of the first chunks of the documents; None to look them up.
    """
    named = " UNION ALL ".join(
        f"""SELECT number, '{field}' AS field, {content} AS content FROM {documents}
        WHERE doc IS NOT NULL AND NOT regexp_full_match({content}, '{_NO_NAME}')"""
        for field, content in (("name", r"regexp_replace(filename, '\.[^.]*$', '')"), ("title", "title"))
    )
    return f"""{named} UNION ALL
        SELECT number, 'opening' AS field, {_CUT} AS content FROM (
            SELECT doc, string_agg(content, ' ' ORDER BY chunk_index) AS content
            FROM {openings or _openings_of(documents)} GROUP BY doc
        ) JOIN {documents} USING (doc)"""


def _openings_of(documents: str) -> str:
    """Return SQL of `(doc, chunk_index, content)`: the beginnings of texts, one character longer than they count."""
    return f"""(SELECT doc, chunk_index, left({CHUNK_CONTENT}, {OPENING + 1}) AS content FROM parts.chunks
        WHERE chunk_index < 2 AND doc IN (SELECT doc FROM {documents}))"""


def weight_of(times: Mapping[str, int]) -> float:
    """Return the weight of a word in an identity.

    Args:
        times: field -> number of times that the field has the word; fields without it are missing.
    """
    found = sum(min(count, _MOST.get(field, 1)) for field, count in times.items())
    return found / (found + 1)


def weights_of_terms(occurrences: str) -> str:
    """Return SQL of `(term, number, weight)`, as `weight_of` computes it.

    Args:
        occurrences: relation `(term, number, field, times)`, one row for each.
    """
    most = " ".join(f"WHEN '{field}' THEN {times}" for field, times in _MOST.items())
    return f"""SELECT term, number, (found / (found + 1))::FLOAT AS weight FROM (
            SELECT term, number, sum(least(times, CASE field {most} ELSE 1 END)) AS found
            FROM {occurrences} GROUP BY ALL
        )"""


def note_numbers(connection: Connection, replaced: str) -> None:
    """Write the numbers of documents that are about to be replaced to a temporary table, for `keep_numbers`.

    Args:
        connection: connection with the index as current database.
        replaced: relation of them.
    """
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE numbered AS
        SELECT {_KEY}, {_CONTENT}, number FROM parts.documents AS d SEMI JOIN {replaced} AS r USING ({_KEY})"""
    )


def keep_numbers(connection: Connection) -> None:
    """Give the documents back their numbers whose identity is still the same, and delete the other identities."""
    same = " AND ".join(f"d.{name} IS NOT DISTINCT FROM n.{name}" for name in f"{_KEY}, {_CONTENT}".split(", "))
    connection.execute(f"UPDATE parts.documents AS d SET number = n.number FROM numbered AS n WHERE {same}")
    connection.execute("DELETE FROM numbered WHERE number IN (SELECT number FROM parts.documents)")
    if count_of(connection, "SELECT count(*) FROM numbered"):
        connection.execute("DELETE FROM parts.identities WHERE document IN (SELECT number FROM numbered)")


def add_identities(connection: Connection, language: str, *, may_spill: bool) -> None:
    """Number the documents that have no number yet, and add their identities; commits as `count_words` does.

    Args:
        connection: connection with the index as current database, chunks included.
        language: language of the words.
        may_spill: as for `count_words`.
    """
    first = count_of(connection, "SELECT coalesce(max(number) + 1, 0) FROM parts.documents")
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE numbered AS SELECT {_KEY}, doc, filename, title,
            (row_number() OVER (ORDER BY {_KEY}) + {first} - 1)::INTEGER AS number
        FROM parts.documents WHERE number IS NULL"""
    )
    if not count_of(connection, "SELECT count(*) FROM numbered"):
        return
    connection.execute(
        """UPDATE parts.documents AS d SET number = n.number FROM numbered AS n
        WHERE d.namespace = n.namespace AND d.document_id = n.document_id"""
    )
    slices = _slices_of_documents(connection)
    in_files = may_spill and len(slices) > FEW_SLICES
    with waiting_rows(connection, "parts.identities", in_files=in_files) as weighted:
        for number, (first_doc, last_doc) in enumerate(slices):
            if number:
                commit_part(connection)
            if number % _OPENED_SLICES == 0:
                _read_openings(connection, first_doc, slices[number : number + _OPENED_SLICES][-1][1])
            _weigh(connection, f"doc BETWEEN {first_doc} AND {last_doc}", language, weighted)
        weighted.sort_into_index("document", first)
    for table in ("numbered", "openings"):
        connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


def _slices_of_documents(connection: Connection) -> list[tuple[int, int]]:
    """Return ranges of `doc` with a few thousand documents of the temporary table `numbered` each."""
    return [
        (first, last)
        for first, last in tuples(
            connection,
            f"""SELECT min(doc), max(doc) FROM (
                SELECT doc, row_number() OVER (ORDER BY doc) // {SLICE} AS slice
                FROM (SELECT DISTINCT doc FROM numbered WHERE doc IS NOT NULL)
            ) GROUP BY slice ORDER BY slice""",
        )
    ]


def _read_openings(connection: Connection, first_doc: int, last_doc: int) -> None:
    """Write the beginnings of the texts of some slices to a temporary table `openings`.

    In the order of the slices, each of which then reads only its part. All chunks are looked through for them; but
    openings of many documents are more than DuckDB sorts in little memory.
    """
    documents = f"(FROM numbered WHERE doc BETWEEN {first_doc} AND {last_doc})"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE openings AS FROM {_openings_of(documents)} ORDER BY doc")


def _weigh(connection: Connection, those: str, language: str, weighted: WaitingRows) -> None:
    """Add the identities of some documents.

    Args:
        connection: connection with the index as current database.
        those: condition over `doc`.
        language: language of the words.
        weighted: receives the rows.
    """
    documents, openings = f"(FROM numbered WHERE {those})", f"(FROM openings WHERE {those})"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE contents AS {identity_contents(documents, openings)}")
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE occurrences AS SELECT number, field, word, count(*) AS times
        FROM (SELECT number, field, unnest(tokens) AS word FROM ({tokenised("contents")})) GROUP BY ALL"""
    )
    learn_new(connection, language)
    # Words of one stem share a term.
    found = """(SELECT term, number, field, sum(times) AS times
        FROM occurrences JOIN known USING (word) WHERE NOT stop GROUP BY ALL)"""
    weighted.add(f"SELECT term, number AS document, weight FROM ({weights_of_terms(found)})")
    for table in ("contents", "occurrences", "known"):
        connection.execute(f"DROP TABLE temp.{table}")
