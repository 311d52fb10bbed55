"""A local folder or a single local file."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field

from parquetry import ids
from parquetry.errors import SettingsError, TransientError
from parquetry.model import Access, Item, Unlisted
from parquetry.settings.base import Section
from parquetry.settings.home import check_place, expanded
from parquetry.sources.base import Place
from parquetry.sources.local.access import SIDECAR, FolderAccess, UnclearAccess
from parquetry.sources.names import native, printable
from parquetry.sources.options import options_of
from parquetry.sources.paths import within
from parquetry.sources.selection import Selection

_READS = 3
_TELLS_CHANGES = os.name == "posix"
_NO_TIME = datetime.fromtimestamp(0, UTC)
INBOXES = (("service", "sessions"), ("service", "statements"))
"""folders in a corpus that hold chats, and statements to remember; all else in a corpus is no source"""


class LocalOptions(Section):
    """`[source.options]` of a folder, besides `archives`."""

    access: Literal["agents"] | None = Field(
        None,
        description="`agents`: every folder of the root belongs to the user of its name, but for `shared`.",
    )
    inodes: bool = Field(
        True,
        description="A file of another inode is another file. `false` where files get new inodes each time, as on some "
        "network mounts.",
    )


class LocalSource:
    """Documents in a folder and below.

    Symbolic links are followed only to files inside the folder; a link that leads out of it is not listed. A link has
    the access of the file that it leads to.

    Args:
        root: the folder.
        include: gitignore-style globs; empty includes everything.
        exclude: gitignore-style globs, in addition to `selection.DEFAULT_EXCLUDES`; `!glob` cancels one of those.
        access: access of the documents, unless a `.parquetry.toml` specifies another.
        agents: every folder of the root belongs to the user of its name; `shared` has the given `access`.
        skip: folder never entered: the corpus itself, if it is inside the source.
        alone: the only file of the folder that is a document; None for all files.
        inner: places within the source that belong to other sources: links into them are not listed.
        inodes: True if a file with another inode counts as another file.
    """

    def __init__(
        self,
        root: Path,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        access: Access | None = None,
        skip: Path | None = None,
        *,
        agents: bool = False,
        alone: str | None = None,
        inner: Sequence[str] = (),
        inodes: bool = True,
    ) -> None:
        self._alone, self._inner, self._inodes = alone, inner, inodes
        self._root = Path(os.path.realpath(root))
        self._selection = Selection(include, exclude)
        self._access, self._agents = access or Access(), agents
        self._skip = Path(os.path.realpath(skip)) if skip else None

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        self._check_root()
        prefix = prefix.rstrip("/")
        if self._alone is not None:
            if prefix not in ("", self._alone):
                return
            prefix = self._alone
        start = os.path.join(self._root, native(prefix)) if prefix else str(self._root)  # noqa: PTH118
        try:
            mode = os.lstat(start).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            yield Unlisted(prefix, f"cannot read the properties of {printable(start)}: {error.strerror}")
            return
        folder = stat.S_ISDIR(mode)
        if prefix and self._selection.leaves_out(prefix, folder=folder):
            raise SettingsError(
                f"{printable(start)} is left out of source {printable(str(self._root))}: its include or exclude globs, "
                "or the default excludes (hidden files, caches, `build` and `dist`), do not let it in"
            )
        access = FolderAccess(self._root, self._access, agents=self._agents)
        yield from self._walk(prefix, start, access) if folder else self._listed(prefix, start, access)

    def _check_root(self) -> None:
        shown = printable(str(self._root))
        try:
            folder = stat.S_ISDIR(os.stat(self._root).st_mode)  # noqa: PTH116
        except FileNotFoundError as error:
            raise SettingsError(f"source folder {shown} does not exist; correct its uri or mount it") from error
        except OSError as error:
            raise SettingsError(f"source folder {shown} cannot be opened: {error.strerror}") from error
        if not folder:
            raise SettingsError(f"source folder {shown} is not a folder; correct its uri")
        if self._skip is not None and self._root.is_relative_to(self._skip) and not self._is_inbox(self._skip):
            if self._root == self._skip:
                raise SettingsError(f"source folder {shown} is the corpus itself; name the folder of your documents")
            corpus = printable(str(self._skip))
            raise SettingsError(
                f"source folder {shown} is inside the corpus {corpus}; give the corpus a folder of its own"
            )

    def _is_inbox(self, corpus: Path) -> bool:
        """True for a folder of what was handed in to the service of a corpus, which keeps it there."""
        return any(self._root.is_relative_to(corpus.joinpath(*inbox)) for inbox in INBOXES)

    def _walk(self, relative: str, folder: str, access: FolderAccess) -> Iterator[Item | Unlisted]:
        pending = [(relative, folder)]
        while pending:
            relative, folder = pending.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
                access.of(relative)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield Unlisted(relative, f"cannot list {printable(folder)}: {error.strerror}")
                continue
            except UnclearAccess as error:
                yield Unlisted(relative, str(error))
                continue
            for entry in entries:
                name = printable(entry.name)
                path = f"{relative}/{name}" if relative else name
                if entry.is_dir(follow_symlinks=False):
                    if self._selection.enters(path) and entry.path != str(self._skip):
                        pending.append((path, entry.path))
                elif entry.name != SIDECAR and self._selection.wants(path):
                    yield from self._listed(path, entry.path, access)

    def _listed(self, path: str, file: str, access: FolderAccess) -> Iterator[Item | Unlisted]:
        place = path
        try:
            if os.path.islink(file):  # noqa: PTH114
                if not self._inside(file):
                    return
                place = printable(os.path.relpath(os.path.realpath(file), self._root))
                if any(within(place, inner) for inner in self._inner):
                    return
            status = os.stat(file)  # noqa: PTH116 - as in the whole scan: a Path for each file costs more than its stat
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.ELOOP:
                yield Unlisted(path, f"cannot read the properties of {printable(file)}: {error.strerror}")
            return
        if not stat.S_ISREG(status.st_mode):
            return
        try:
            seen_by = access.of(place.rpartition("/")[0])
        except UnclearAccess as error:
            yield Unlisted(path, str(error))
        else:
            yield Item(
                path=path,
                uri=Path(file).as_uri(),
                size=status.st_size,
                etag=self._etag(status),
                modified_at=_modified(status),
                access=seen_by,
            )

    def _etag(self, status: os.stat_result) -> str:
        """Return the change token of a file.

        Programs can set size and modification time at will, but not the time of the last change to the file or its
        properties. A folder swapped for another changes neither time of its files, only their inodes.
        """
        # On Windows this is the creation time.
        changed = f"{status.st_ctime_ns:x}" if _TELLS_CHANGES else ""
        inode = f"{status.st_ino:x}" if self._inodes else ""
        return f"{status.st_mtime_ns:x}-{status.st_size:x}-{changed}-{inode}"

    def _inside(self, link: str) -> bool:
        target = Path(os.path.realpath(link))
        if self._skip is not None and target.is_relative_to(self._skip):
            return False
        return target.is_relative_to(self._root)

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        """Read one file; read it again if it changed in the meantime."""
        file = self._file(item.path)
        for _ in range(_READS):
            with file.open("rb") as stream:
                before = os.fstat(stream.fileno())
                content = stream.read()
                after = os.fstat(stream.fileno())
            if self._etag(before) == self._etag(after) and len(content) == after.st_size:
                return replace(item, size=len(content), etag=self._etag(after), modified_at=_modified(after)), content
        raise TransientError("changed-while-read", f"{item.path} kept changing while it was read")

    def hash(self, path: str) -> str:
        with self._file(path).open("rb") as stream:
            return ids.stream_hash(stream)

    def open(self, path: str) -> BinaryIO:
        """Open one file for random access."""
        return self._file(path).open("rb")

    def _file(self, path: str) -> Path:
        file = self._root / native(path)
        if not Path(os.path.realpath(file)).is_relative_to(self._root):
            raise FileNotFoundError(errno.ENOENT, "now leads out of the source", path)
        return file


def open_local(place: Place) -> LocalSource:
    """Open the folder or file at a path or `file://` URL.

    Raises:
        SettingsError: it has unknown options, or options that contradict its visibility.
    """
    options = options_of(place, LocalOptions)
    agents = options.access == "agents"
    if agents and place.access.visibility == "individual":
        raise SettingsError(
            f'source {place.name}: access = "agents" shows each folder to another user, and visibility = "individual" '
            f"allows {place.access.user_id} alone; leave out one of them"
        )
    root, alone = Path(os.path.realpath(local_path(place.uri))), None
    if root.is_file():
        root, alone = root.parent, printable(root.name)
    return LocalSource(
        root,
        place.include,
        place.exclude,
        place.access,
        place.corpus,
        agents=agents,
        alone=alone,
        inner=place.inner,
        inodes=options.inodes,
    )


def is_local(uri: str) -> bool:
    """Return True for a path or `file://` URL."""
    return "://" not in uri or uri.startswith("file://")


def local_path(uri: str) -> Path:
    """Return the path of a local folder or file given as a path or `file://` URL.

    Raises:
        SettingsError: it names the home of an unknown user, or is not a valid URL.
    """
    check_place(uri)
    return Path(unquote(urlsplit(uri).path, errors="surrogateescape")) if uri.startswith("file://") else expanded(uri)


def _modified(status: os.stat_result) -> datetime:
    try:
        return datetime.fromtimestamp(status.st_mtime, UTC)
    except (OverflowError, ValueError, OSError):
        # Filesystems allow times beyond the year 9999; the file must still be listed.
        return _NO_TIME
