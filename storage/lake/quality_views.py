"""SQL of the views about how completely documents were read. Runs nothing.

The facts are stored in `structure`, beside the text, so they belong to a revision as the text does: they appear and go
with it, and are seen by those who see the document.
"""

from __future__ import annotations

_FACTS = """(
    SELECT revision, json_extract(structure, '$.quality') AS known,
        (structure->>'$.quality.pages')::INTEGER AS pages,
        json_array_length(structure, '$.quality.without_text')::INTEGER AS pages_without_text,
        json_array_length(structure, '$.quality.unread')::INTEGER AS pages_unread,
        (structure->>'$.quality.least')::BIGINT AS least_characters,
        (structure->>'$.quality.median')::DOUBLE AS median_characters,
        json_array_length(structure, '$.quality.ocr')::INTEGER AS pages_ocr,
        (structure->>'$.quality.ocr_confidence')::DOUBLE AS ocr_confidence,
        (structure->>'$.quality.unmapped')::BIGINT AS unmapped, (structure->>'$.quality.tables')::INTEGER AS tables,
        (structure->>'$.quality.cut')::BIGINT AS cut, structure->>'$.parts[0][6]' AS grammar
    FROM {texts}
)"""

_QUALITY = f"""
CREATE VIEW quality AS
SELECT * EXCLUDE (is_known, revision), CASE WHEN is_known THEN round(1 -
    (1 - coalesce(pages_unread / pages, 0))
    * (1 - coalesce((1 - ocr_confidence) * pages_ocr / pages, 0))
    * (1 - coalesce(unmapped_share, 0)) * (1 - coalesce(cut / (characters + cut), 0)), 6) END AS known_loss, revision
FROM (
    SELECT d.document_id, d.namespace, d.source, d.path, d.uri, d.filename, d.media_type, d.size, d.characters, f.pages,
        f.pages_without_text, f.pages_unread, f.least_characters, f.median_characters, f.pages_ocr, f.ocr_confidence,
        f.unmapped, f.unmapped / greatest(d.characters, f.unmapped, 1) AS unmapped_share, f.tables, f.cut,
        CASE WHEN f.grammar IS NULL AND d.media_type <> 'application/x-ipynb+json'
            THEN nullif(json_extract_string(d.metadata, '$.language'), '') END AS language,
        f.known IS NOT NULL AS is_known, d.revision
    FROM documents AS d LEFT JOIN {_FACTS} AS f USING (revision)
)
"""

_PAGES = """
CREATE VIEW pages AS
WITH facts AS (
    SELECT revision, structure, json_extract(structure, '$.quality') AS known, structure->>'$.parts[0][2]' AS first
    FROM {texts}
), written AS (
    SELECT revision, part->>'$[2]' AS kind, (part->>'$[3]')::INTEGER AS page, part->>'$[4]' AS name,
        sum((part->>'$[1]')::BIGINT - (part->>'$[0]')::BIGINT)::BIGINT AS characters
    FROM (SELECT revision, unnest(json_extract(structure, '$.parts[*]')) AS part FROM facts)
    GROUP BY ALL
), each AS (
    FROM written
    UNION ALL BY NAME
    SELECT revision, first AS kind, unnest(json_extract(known, '$.without_text')::INTEGER[]) AS page,
        0::BIGINT AS characters
    FROM facts
), ocr AS (
    SELECT revision, (entry->>'$[0]')::INTEGER AS page, (entry->>'$[1]')::DOUBLE AS ocr_confidence
    FROM (SELECT revision, unnest(json_extract(known, '$.ocr[*]')) AS entry FROM facts)
), unread AS (SELECT revision, unnest(json_extract(known, '$.unread')::INTEGER[]) AS page FROM facts)
SELECT d.document_id, d.namespace, d.source, d.path, d.uri, d.filename, e.kind, e.page, e.name, e.characters,
    CASE WHEN json_extract(f.known, '$.unread') IS NOT NULL THEN u.page IS NOT NULL END AS unread, o.ocr_confidence,
    e.revision
FROM each AS e JOIN facts AS f USING (revision) JOIN documents AS d USING (revision)
LEFT JOIN ocr AS o ON o.revision = e.revision AND o.page = e.page
LEFT JOIN unread AS u ON u.revision = e.revision AND u.page = e.page
"""


def quality_views(texts: str) -> tuple[str, ...]:
    """Return SQL that creates the views `quality` and `pages`.

    Args:
        texts: relation with the columns `revision` and `structure` of stored texts.
    """
    return _QUALITY.format(texts=texts), _PAGES.format(texts=texts)
