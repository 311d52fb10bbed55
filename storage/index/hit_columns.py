"""The columns of the search index that a hit shows, of its file and of its copy in memory alike."""

DOCUMENT_COLUMNS = (
    "doc, document_id, uri, path, filename, title, namespace, source, media_type, modified_at, tags, metadata"
)
"""columns of a document that a hit shows"""
CHUNK_COLUMNS = 'chunk, doc, kind, page, headings, start, "end", text, chunk_index, tokens, revision'
"""columns of a chunk that a hit shows"""
