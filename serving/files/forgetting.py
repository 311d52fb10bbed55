"""Erasure of a user's files and vector stores."""

from __future__ import annotations

from pathlib import Path

from parquetry.serving.files.content import FileFolder
from parquetry.serving.files.table import ADDED, FILE, SCHEMA
from parquetry.serving.state.database import StateDatabase

_OF_USER = "visibility = 'individual' AND user_id = ?"
_TABLES = (
    ("attachments", "store_id IN (SELECT id FROM stores WHERE {0}) OR file_id IN (SELECT id FROM files WHERE {0})"),
    ("batch_files", "batch_id IN (SELECT b.id FROM batches AS b JOIN stores AS s ON s.id = b.store_id WHERE s.{0})"),
    ("batches", "store_id IN (SELECT id FROM stores WHERE {0})"),
    ("parts", "upload_id IN (SELECT id FROM uploads WHERE {0})"),
    ("uploads", "{0}"),
    ("stores", "{0}"),
    ("files", "{0}"),
)
"""tables -> rows of a user's own, those that name others first"""


def forget_files(state: Path, user_id: str) -> int:
    """Delete the files and vector stores of a user alone; return the number of the files.

    Their documents are erased with the other uploads of the user.

    Args:
        state: state folder of a service; nothing happens if there is none.
        user_id: the user.

    Raises:
        StorageError: a file cannot be deleted.
    """
    if not (state / FILE).exists():
        return 0
    database = StateDatabase(state, FILE, SCHEMA, "files and vector stores", ADDED)
    try:
        own = database.rows(
            f"SELECT id FROM files WHERE {_OF_USER} UNION ALL "
            f"SELECT p.id FROM parts AS p JOIN uploads AS u ON u.id = p.upload_id WHERE u.{_OF_USER}",
            (user_id, user_id),
        )
        FileFolder(state).delete(*(id_ for (id_,) in own))
        statements = []
        for table, rows in _TABLES:
            where = rows.format(_OF_USER)
            statements.append((f"DELETE FROM {table} WHERE {where}", (user_id,) * where.count("?")))
        return database.erase(*statements)[-1]
    finally:
        database.close()
