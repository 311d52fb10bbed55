"""Rows of files, and of uploads in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from parquetry.model import Access
from parquetry.serving.access.principals import Principal
from parquetry.serving.files.model import KeptFile, Position, now
from parquetry.serving.files.table import FILES, access_of, file_of, owner_values
from parquetry.serving.state.database import StateDatabase
from parquetry.storage.search.filters import seen_by

_PRESENT = "deleted = 0 AND (expires_at IS NULL OR expires_at > :now)"
_UPLOADS = (
    "id, filename, bytes, purpose, content_type, created_at, status, file_id, file_seconds, namespace, visibility, "
    "org_id, user_id"
)


@dataclass(frozen=True, slots=True)
class PartialUpload:
    """A file that arrives in parts."""

    id: str
    filename: str
    bytes: int
    """bytes of all parts together, as announced"""
    purpose: str
    content_type: str | None
    created_at: int
    """microseconds since 1970"""
    status: str
    """pending, completed or cancelled"""
    file_id: str | None
    """the file, once it is complete"""
    file_seconds: int | None
    """seconds after which the file expires"""
    namespace: str
    access: Access


@dataclass(frozen=True, slots=True)
class UploadedPart:
    """One part of such a file."""

    id: str
    upload_id: str
    created_at: int
    """microseconds since 1970"""
    bytes: int


class FileRecords:
    """The files of a service. Safe to use from several threads and processes; changes are on disk at once.

    Args:
        database: the file with the tables.
    """

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def add(self, file: KeptFile) -> None:
        """Add a file, whose bytes are kept already."""
        values = (file.id, file.filename, file.bytes, file.purpose, file.content_type, file.created_at, file.expires_at)
        self._database.write(
            f"INSERT INTO files ({FILES}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, *owner_values(file.namespace, file.access)),
        )

    def get(self, principal: Principal, id: str, *, deleted: bool = False) -> KeptFile | None:
        """Return a file; None if it does not exist for a principal.

        Args:
            principal: maker of the request.
            id: id of the file.
            deleted: return one that is being deleted, too.
        """
        seen, values = visible_to(principal)
        present = "true" if deleted else _PRESENT
        found = self._database.rows(
            f"SELECT {FILES} FROM files WHERE id = :id AND {present} AND {seen}", {**values, "id": id, "now": now()}
        )
        return file_of(found[0]) if found else None

    def of(self, id: str) -> KeptFile | None:
        """Return a file, for any caller; None if it does not exist."""
        found = self._database.rows(f"SELECT {FILES} FROM files WHERE id = ?", (id,))
        return file_of(found[0]) if found else None

    def list(
        self, principal: Principal, purpose: str | None, limit: int, *, newest_first: bool, after: Position | None
    ) -> Sequence[KeptFile]:
        """Return the files that exist for a principal, by time.

        Args:
            principal: maker of the request.
            purpose: only files of this purpose.
            limit: maximum number.
            newest_first: order.
            after: only files behind this place.
        """
        seen, values = visible_to(principal)
        values |= {"now": now(), "purpose": purpose, "limit": limit}
        order, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        place = "true"
        if after is not None:
            place = f"(created_at, id) {beyond} (:time, :after)"
            values |= {"time": after.created_at, "after": after.id}
        rows = self._database.rows(
            f"""SELECT {FILES} FROM files WHERE {_PRESENT} AND {seen} AND {place}
            AND (:purpose IS NULL OR purpose = :purpose) ORDER BY created_at {order}, id {order} LIMIT :limit""",
            values,
        )
        return [file_of(row) for row in rows]

    def mark_deleted(self, id: str) -> None:
        """Hide a file from callers, until it is removed."""
        self._database.write("UPDATE files SET deleted = 1 WHERE id = ?", (id,))

    def remove(self, id: str) -> None:
        """Remove a file, whose bytes are deleted already."""
        self._database.write("DELETE FROM files WHERE id = ?", (id,))

    def to_remove(self) -> Sequence[KeptFile]:
        """Return the files that are deleted or expired, and still have a row."""
        rows = self._database.rows(f"SELECT {FILES} FROM files WHERE NOT ({_PRESENT})", {"now": now()})
        return [file_of(row) for row in rows]

    def known(self) -> set[str]:
        """Return the ids of all files and parts, whose bytes are kept."""
        return {id_ for (id_,) in self._database.rows("SELECT id FROM files UNION ALL SELECT id FROM parts")}

    def close(self) -> None:
        """Close the file with the tables of files and vector stores."""
        self._database.close()

    # --- uploads in parts

    def add_upload(self, upload: PartialUpload) -> None:
        """Begin a file that arrives in parts."""
        told = (upload.id, upload.filename, upload.bytes, upload.purpose, upload.content_type, upload.created_at)
        self._database.write(
            f"INSERT INTO uploads ({_UPLOADS}) VALUES ({', '.join('?' * 13)})",
            (*told, upload.status, None, upload.file_seconds, *owner_values(upload.namespace, upload.access)),
        )

    def upload(self, principal: Principal, id: str) -> PartialUpload | None:
        """Return such a file; None if it does not exist for a principal."""
        seen, values = visible_to(principal)
        found = self._database.rows(f"SELECT {_UPLOADS} FROM uploads WHERE id = :id AND {seen}", {**values, "id": id})
        return _upload_of(found[0]) if found else None

    def end_upload(self, id: str, status: str, file: KeptFile | None = None) -> bool:
        """End such a file, with the file that it became; return False if it is not pending any more."""
        with self._database.transaction() as connection:
            ended = connection.execute(
                "UPDATE uploads SET status = ?, file_id = ? WHERE id = ? AND status = 'pending'",
                (status, None if file is None else file.id, id),
            ).rowcount
            if ended and file is not None:
                values = (file.id, file.filename, file.bytes, file.purpose, file.content_type, file.created_at)
                connection.execute(
                    f"INSERT INTO files ({FILES}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*values, file.expires_at, *owner_values(file.namespace, file.access)),
                )
        return bool(ended)

    def add_part(self, part: UploadedPart, most: int) -> bool:
        """Add a part, whose bytes are kept already; return False if the parts have more bytes than announced.

        Args:
            part: the part.
            most: maximum bytes of all parts.
        """
        with self._database.transaction() as connection:
            ((size,),) = connection.execute(
                "SELECT coalesce(sum(bytes), 0) FROM parts WHERE upload_id = ?", (part.upload_id,)
            )
            if size + part.bytes > most:
                return False
            connection.execute(
                "INSERT INTO parts (id, upload_id, created_at, bytes) VALUES (?, ?, ?, ?)",
                (part.id, part.upload_id, part.created_at, part.bytes),
            )
        return True

    def parts(self, upload_id: str) -> dict[str, UploadedPart]:
        """Return the parts of a file by their ids."""
        rows = self._database.rows(
            "SELECT id, upload_id, created_at, bytes FROM parts WHERE upload_id = ?", (upload_id,)
        )
        return {row[0]: UploadedPart(*row) for row in rows}

    def remove_parts(self, upload_id: str) -> None:
        """Remove the parts of a file, whose bytes are deleted already."""
        self._database.write("DELETE FROM parts WHERE upload_id = ?", (upload_id,))

    def uploads_before(self, created_at: int) -> Sequence[str]:
        """Return the uploads that began before a time, in microseconds since 1970."""
        return [id_ for (id_,) in self._database.rows("SELECT id FROM uploads WHERE created_at < ?", (created_at,))]

    def remove_upload(self, id: str) -> None:
        """Remove the row of an upload without parts."""
        self._database.write("DELETE FROM uploads WHERE id = ?", (id,))


def visible_to(principal: Principal) -> tuple[str, dict[str, Any]]:
    """Return the condition on rows with an owner that exist for a principal, and its values."""
    values: dict[str, Any] = {}
    conditions = ["true"]
    caller = principal.caller()
    if caller is not None:
        conditions.append(seen_by(":own_org", ":own_user"))
        values |= {"own_org": caller.org_id, "own_user": caller.user_id}
    if principal.namespaces is not None:
        names = {f"namespace{number}": name for number, name in enumerate(principal.namespaces)}
        conditions.append(f"namespace IN ({', '.join(f':{name}' for name in names)})")
        values |= names
    return f"({' AND '.join(conditions)})", values


def _upload_of(row: Sequence[Any]) -> PartialUpload:
    id_, filename, size, purpose, content_type, created, status, file_id, seconds, namespace = row[:10]
    access = access_of(row[10:])
    return PartialUpload(
        id_, filename, size, purpose, content_type, created, status, file_id, seconds, namespace, access
    )
