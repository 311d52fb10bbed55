"""Rows of vector stores, of the files in them, and of batches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from parquetry.model import ChunkSize
from parquetry.serving.access.principals import Principal
from parquetry.serving.files.file_records import visible_to
from parquetry.serving.files.model import SHOWN, AttachmentStatus, FileBatch, StoreFile, VectorStore, now
from parquetry.serving.files.table import (
    ATTACHMENTS,
    BATCHES,
    STORES,
    attachment_of,
    batch_of,
    json_of,
    owner_values,
    store_of,
)
from parquetry.serving.state.database import StateDatabase

_ACTIVE_US = 60 * 1_000_000
"""microseconds by which the time of the last activity may be late"""
_SHOWN = ", ".join(map(repr, SHOWN))


class StoreRecords:
    """The vector stores of a service. Safe to use from several threads and processes; changes are on disk at once.

    Args:
        database: the file with the tables.
    """

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    # --- stores

    def add(self, store: VectorStore) -> None:
        """Add a store."""
        self._database.write(
            f"INSERT INTO stores ({STORES}) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?)",
            (
                *(store.id, store.name, store.created_at, store.last_active_at, store.expires_days),
                json_of(dict(store.metadata)),
                store.description,
                *owner_values(store.namespace, store.access),
            ),
        )

    def get(self, principal: Principal, id: str, *, deleted: bool = False) -> VectorStore | None:
        """Return a store; None if it does not exist for a principal.

        Args:
            principal: maker of the request.
            id: id of the store.
            deleted: return one that is being deleted, too.
        """
        seen, values = visible_to(principal)
        present = "true" if deleted else "deleted = 0"
        found = self._database.rows(
            f"SELECT {STORES} FROM stores WHERE id = :id AND {present} AND {seen}", {**values, "id": id}
        )
        return store_of(found[0]) if found else None

    def of(self, id: str) -> VectorStore | None:
        """Return a store, for any caller, also one that is being deleted; None if it does not exist."""
        found = self._database.rows(f"SELECT {STORES} FROM stores WHERE id = ?", (id,))
        return store_of(found[0]) if found else None

    def list(self, principal: Principal) -> Sequence[VectorStore]:
        """Return the stores that exist for a principal, in no order."""
        seen, values = visible_to(principal)
        rows = self._database.rows(f"SELECT {STORES} FROM stores WHERE deleted = 0 AND {seen}", values)
        return [store_of(row) for row in rows]

    def change(self, id: str, **columns: Any) -> None:
        """Change columns of a store: `name`, `expires_days` or `metadata`; it is active now."""
        known = {"name", "expires_days", "metadata"} & columns.keys()
        values = [json_of(columns[name]) if name == "metadata" else columns[name] for name in known]
        changed = "".join(f"{name} = ?, " for name in known)
        self._database.write(f"UPDATE stores SET {changed}last_active_at = ? WHERE id = ?", (*values, now(), id))

    def touch(self, ids: Collection[str]) -> None:
        """Note that stores are in use, to a minute."""
        marks = ", ".join("?" * len(ids))
        late = f"id IN ({marks}) AND last_active_at < ?"
        values = (*ids, now() - _ACTIVE_US)
        if self._database.rows(f"SELECT 1 FROM stores WHERE {late} LIMIT 1", values):
            self._database.write(f"UPDATE stores SET last_active_at = ? WHERE {late}", (now(), *values))

    def mark_deleted(self, id: str) -> None:
        """Hide a store from callers, until it is removed."""
        self._database.write("UPDATE stores SET deleted = 1 WHERE id = ?", (id,))

    def mark_expired(self, id: str) -> None:
        """Note that the files of a store are removed because it expired."""
        self._database.write("UPDATE stores SET expired = 1 WHERE id = ?", (id,))

    def remove(self, id: str) -> None:
        """Remove a store with the rows of its files and batches."""
        with self._database.transaction() as connection:
            connection.execute(
                "DELETE FROM batch_files WHERE batch_id IN (SELECT id FROM batches WHERE store_id = ?)", (id,)
            )
            for table in ("attachments", "batches"):
                connection.execute(f"DELETE FROM {table} WHERE store_id = ?", (id,))
            connection.execute("DELETE FROM stores WHERE id = ?", (id,))

    def to_remove(self) -> Sequence[str]:
        """Return the stores that are deleted, and still have a row."""
        return [id_ for (id_,) in self._database.rows("SELECT id FROM stores WHERE deleted = 1")]

    def to_expire(self) -> Sequence[VectorStore]:
        """Return the stores that expired, and whose files are not removed yet."""
        rows = self._database.rows(
            f"SELECT {STORES} FROM stores WHERE deleted = 0 AND expired = 0 AND expires_days IS NOT NULL"
        )
        return [store for store in map(store_of, rows) if store.is_expired(now())]

    # --- files of stores

    def attach(
        self, store_id: str, files: Sequence[tuple[str, Mapping[str, Any], ChunkSize]], batch_id: str | None = None
    ) -> Sequence[StoreFile]:
        """Put files into a store, `in_progress`; one that is there already stays in its place.

        Args:
            store_id: id of the store.
            files: id, attributes and size of chunks of each.
            batch_id: id of a new batch of these files.
        """
        moment = now()
        with self._database.transaction() as connection:
            if batch_id is not None:
                connection.execute(f"INSERT INTO batches ({BATCHES}) VALUES (?, ?, ?, 0)", (batch_id, store_id, moment))
            for file_id, attributes, size in files:
                connection.execute(
                    """INSERT INTO attachments (store_id, file_id, created_at, status, attributes, chunk_tokens,
                    chunk_overlap, touched_at) VALUES (?, ?, ?, 'in_progress', ?, ?, ?, ?)
                    ON CONFLICT (store_id, file_id) DO UPDATE SET status = excluded.status, error_code = NULL,
                    error_message = NULL, attributes = excluded.attributes, chunk_tokens = excluded.chunk_tokens,
                    chunk_overlap = excluded.chunk_overlap, job = NULL, touched_at = excluded.touched_at""",
                    (store_id, file_id, moment, json_of(dict(attributes)), size.tokens, size.overlap, moment),
                )
                if batch_id is not None:
                    connection.execute("INSERT OR IGNORE INTO batch_files VALUES (?, ?)", (batch_id, file_id))
        return self.attachments(store_id, [file_id for file_id, _, _ in files])

    def attachment(self, store_id: str, file_id: str, *, removing: bool = False) -> StoreFile | None:
        """Return a file of a store; None if it is not there.

        Args:
            store_id: id of the store.
            file_id: id of the file.
            removing: return one that is being removed, too.
        """
        found = self.attachments(store_id, [file_id])
        statuses = (*SHOWN, "removing") if removing else SHOWN
        return next((each for each in found if each.status in statuses), None)

    def attachments(self, store_id: str, file_ids: Collection[str]) -> Sequence[StoreFile]:
        """Return some files of a store, whatever their status."""
        rows = self._database.rows(
            f"""SELECT {ATTACHMENTS} FROM attachments WHERE store_id = ?
            AND file_id IN (SELECT value FROM json_each(?)) ORDER BY number""",
            (store_id, json_of(list(file_ids))),
        )
        return [attachment_of(row) for row in rows]

    def page(
        self,
        store_id: str,
        limit: int,
        *,
        newest_first: bool,
        status: AttachmentStatus | None = None,
        batch_id: str | None = None,
        after: int | None = None,
        before: int | None = None,
    ) -> Sequence[StoreFile]:
        """Return files of a store in order of their attachment.

        Args:
            store_id: id of the store.
            limit: maximum number.
            newest_first: order.
            status: only files in this status.
            batch_id: only files of this batch.
            after: only files behind this number, in the order asked for.
            before: only files in front of this number: the last of them.
        """
        where, values = _chosen(store_id, status, batch_id)
        # The page in front of a place is read from there backwards.
        descending = newest_first if before is None else not newest_first
        for bound, beyond in ((after, newest_first), (before, not newest_first)):
            if bound is not None:
                where += f" AND number {'<' if beyond else '>'} ?"
                values.append(bound)
        way = "DESC" if descending else "ASC"
        rows = self._database.rows(
            f"SELECT {ATTACHMENTS} FROM attachments WHERE {where} ORDER BY number {way} LIMIT ?", [*values, limit]
        )
        found = [attachment_of(row) for row in rows]
        return found if before is None else found[::-1]

    def counts(self, store_ids: Collection[str]) -> dict[str, dict[str, int]]:
        """Return the number of files of stores by status, and their `usage_bytes`."""
        return self._counts("a.store_id", "attachments AS a", store_ids)

    def batch_counts(self, batch_id: str) -> dict[str, int]:
        """Return the number of files of a batch by status."""
        joined = "attachments AS a JOIN batches AS b USING (store_id) JOIN batch_files AS f ON f.batch_id = b.id "
        return self._counts("b.id", f"{joined} AND f.file_id = a.file_id", [batch_id]).get(batch_id, {})

    def _counts(self, key: str, joined: str, ids: Collection[str]) -> dict[str, dict[str, int]]:
        rows = self._database.rows(
            f"""SELECT {key}, a.status, count(*), sum(a.usage_bytes) FROM {joined}
            WHERE {key} IN (SELECT value FROM json_each(?)) AND a.status IN ({_SHOWN}) GROUP BY 1, 2""",
            (json_of(list(ids)),),
        )
        found: dict[str, dict[str, int]] = {}
        for id_, status, number, usage in rows:
            counts = found.setdefault(id_, {"usage_bytes": 0})
            counts[status] = number
            counts["usage_bytes"] += usage
        return found

    def in_work(self, store_ids: Collection[str] | None = None) -> Sequence[StoreFile]:
        """Return the files of stores whose last change is not known to be done; None for all stores.

        A cancelled file is one of them until its document is removed.
        """
        chosen = "true" if store_ids is None else "store_id IN (SELECT value FROM json_each(?))"
        rows = self._database.rows(
            f"SELECT {ATTACHMENTS} FROM attachments WHERE {chosen} AND (status IN ('in_progress', 'removing') "
            "OR (status = 'cancelled' AND job IS NOT NULL))",
            () if store_ids is None else (json_of(list(store_ids)),),
        )
        return [attachment_of(row) for row in rows]

    def of_files(self, file_ids: Collection[str]) -> Sequence[StoreFile]:
        """Return the places of files in all stores, whatever their status."""
        rows = self._database.rows(
            f"SELECT {ATTACHMENTS} FROM attachments WHERE file_id IN (SELECT value FROM json_each(?))",
            (json_of(list(file_ids)),),
        )
        return [attachment_of(row) for row in rows]

    def queued(self, attachments: Collection[StoreFile], job: str) -> None:
        """Note the job that carries out the last change of files; a later change has a job of its own."""
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE attachments SET job = ? WHERE number = ? AND touched_at = ?",
                [(job, each.number, each.touched_at) for each in attachments],
            )

    def settle(
        self, attachment: StoreFile, status: AttachmentStatus, error: tuple[str, str] | None = None, usage: int = 0
    ) -> None:
        """Record how the last change of a file ended; a later change is left alone."""
        code, message = error or (None, None)
        self._database.write(
            "UPDATE attachments SET status = ?, error_code = ?, error_message = ?, usage_bytes = ?, "
            "job = CASE WHEN status = 'in_progress' THEN job END "
            "WHERE number = ? AND touched_at = ? AND status = ?",
            (status, code, message, usage, attachment.number, attachment.touched_at, attachment.status),
        )

    def begin(
        self,
        attachments: Collection[StoreFile],
        status: AttachmentStatus,
        attributes: Mapping[str, Any] | None = None,
    ) -> Sequence[StoreFile]:
        """Begin another change of files; return them as they are now.

        Args:
            attachments: the files.
            status: `in_progress`, `removing` or `cancelled`.
            attributes: their new attributes; None to leave them.
        """
        moment = now()
        with self._database.transaction() as connection:
            for each in attachments:
                new = each.attributes if attributes is None else attributes
                connection.execute(
                    "UPDATE attachments SET status = ?, job = NULL, touched_at = ?, attributes = ? WHERE number = ?",
                    (status, moment, json_of(dict(new)), each.number),
                )
            rows = connection.execute(
                f"SELECT {ATTACHMENTS} FROM attachments WHERE number IN (SELECT value FROM json_each(?))",
                (json_of([each.number for each in attachments]),),
            ).fetchall()
        return [attachment_of(row) for row in rows]

    def forget_removed(self, before: int) -> None:
        """Delete the rows of files that were removed before a time, in microseconds since 1970."""
        self._database.write("DELETE FROM attachments WHERE status = 'removed' AND touched_at < ?", (before,))

    # --- batches

    def batch(self, store_id: str, id: str) -> FileBatch | None:
        """Return a batch of a store; None if it is not there."""
        found = self._database.rows(f"SELECT {BATCHES} FROM batches WHERE store_id = ? AND id = ?", (store_id, id))
        return batch_of(found[0]) if found else None

    def cancel_batch(self, id: str) -> Sequence[StoreFile]:
        """Cancel a batch: return those of its files that are in progress, `cancelled` now."""
        self._database.write("UPDATE batches SET cancelled = 1 WHERE id = ?", (id,))
        rows = self._database.rows(
            f"""SELECT {ATTACHMENTS} FROM attachments WHERE status = 'in_progress' AND (store_id, file_id) IN (
                SELECT b.store_id, f.file_id FROM batches AS b JOIN batch_files AS f ON f.batch_id = b.id WHERE b.id = ?
            )""",
            (id,),
        )
        return [attachment_of(row) for row in rows]


def _chosen(store_id: str, status: AttachmentStatus | None, batch_id: str | None) -> tuple[str, list[Any]]:
    where, values = f"store_id = ? AND status IN ({_SHOWN})", [store_id]
    if status is not None:
        where += " AND status = ?"
        values.append(status)
    if batch_id is not None:
        where += " AND file_id IN (SELECT file_id FROM batch_files WHERE batch_id = ?)"
        values.append(batch_id)
    return where, values
