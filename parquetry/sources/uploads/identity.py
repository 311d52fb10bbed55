"""Identity of an upload, from which its path and the names of its files on disk derive. Pure."""

from __future__ import annotations

import re
from urllib.parse import quote

from parquetry import ids
from parquetry.errors import BrokenDocument
from parquetry.masking import holds_credentials
from parquetry.model import Access
from parquetry.printing import visible

STORE_KEY = "vector_store"
"""key in the metadata of a document that was attached to a vector store, with the ids of both and its attributes"""
UPLOADS = "uploads"
"""name of the source of documents that were handed in; of each namespace that has some"""
MOST_NAME = 4096
"""maximum characters of a name, a filename and an address"""
_NAMESPACE = re.compile(r"[\w.-]{1,200}")
_PLAIN = re.compile(r"(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
"""namespaces that are their own folder name on every disk; the others get a digest"""
_OWNED = "~"
"""first character of the path of an upload with an owner"""


def upload_path(name: str, access: Access) -> str:
    r"""Return the path of an upload within its source, which identifies it within its namespace.

    Documents of one name and different owners are different documents: `minutes.md` of nobody, `~ada/minutes.md` of the
    user `ada`, `~@acme/minutes.md` of the organization `acme`. Tags and, for one owner, visibility are no part of it.

    Args:
        name: name that the document was handed in under; control and invisible characters become visible (`\u{1b}`).
        access: its user, or without one its organization, is the owner.

    Raises:
        BrokenDocument: the name is too long.
    """
    shown = checked_name(name)
    if access.user_id:
        return f"{_OWNED}{_quoted(access.user_id)}/{shown}"
    if access.org_id:
        return f"{_OWNED}@{_quoted(access.org_id)}/{shown}"
    return f"{_OWNED}/{shown}" if shown.startswith(_OWNED) else shown


def store_folder(store_id: str) -> str:
    """Return the folder of the documents that are attached to a vector store; no name of an upload leads there.

    Args:
        store_id: id of the store, of letters, digits, `_` and `-`.
    """
    return f"{_OWNED}/{store_id}"


def stored_file(path: str) -> tuple[str, str] | None:
    """Return the ids of store and file of an attached document, from its path; None for the path of another one."""
    above, _, rest = path.partition("/")
    store, _, file = rest.partition("/")
    return (store, file) if above == _OWNED and file and not rest.startswith(_OWNED) else None


def checked_name(name: str) -> str:
    """Return a name as it is stored and shown.

    Raises:
        BrokenDocument: it is too long, or an address with a password or token.
    """
    if len(name) > MOST_NAME:
        raise BrokenDocument("name-too-long", f"its name has {len(name):,} characters; {MOST_NAME:,} are possible")
    if holds_credentials(name):
        raise BrokenDocument("bad-name", "its name is an address with credentials, which would be stored and shown")
    return visible(name)


def check_namespace(namespace: str) -> None:
    """Refuse a name that no namespace can have.

    Raises:
        BrokenDocument: letters, digits, `_`, `.` and `-` make up the name of a namespace.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise BrokenDocument(
            "bad-namespace",
            f"{visible(namespace[:80])!r} cannot be the name of a namespace: letters, digits, _, . and - are possible",
        )


def namespace_folder(namespace: str) -> str:
    """Return the folder of a namespace: its name where every disk can hold it, else a digest."""
    return namespace if _PLAIN.fullmatch(namespace) else f"={ids.name_hash(namespace)}"


def upload_folder(path: str) -> str:
    """Return the folder of an upload within that of its namespace."""
    return ids.name_hash(path)


def owner_mark(access: Access) -> str:
    """Return the mark of an upload's owner in the names of its files, by which an erasure knows them."""
    return "shared" if access.visibility != "individual" else user_mark(access.user_id or "")


def user_mark(user_id: str) -> str:
    """Return the mark of a user's own uploads."""
    return ids.name_hash(user_id)


def _quoted(owner: str) -> str:
    return quote(checked_name(owner), safe=" +=:,")
