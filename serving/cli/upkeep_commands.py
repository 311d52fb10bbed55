"""The commands `restore` and `remove`, which change a corpus without reading a source."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Annotated

import typer

from parquetry.model import DocumentRow
from parquetry.planning.rows import new_stamp
from parquetry.plural import counted
from parquetry.printing import tell
from parquetry.serving.cli.options import ConfigOption, CorpusOption, JsonOption, NamespaceOption, settings_for
from parquetry.serving.cli.output import print_json
from parquetry.serving.search.known_names import check_namespace
from parquetry.settings.sections import CorpusSettings, Settings
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.sources.uploads.store import UploadStore
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_snapshot


def _open(corpus: CorpusSettings) -> Lake:
    """Open an existing corpus for writing."""
    Lake(corpus.root)
    return Lake(corpus.root, create=True, single_writer=corpus.single_writer)


def _check_namespace(settings: Settings, namespace: str | None, relation: str = "published") -> None:
    """Reject a namespace that the corpus does not have."""
    if namespace is not None:
        with closing(connect_snapshot(Lake(settings.corpus.root).snapshot())) as connection:
            check_namespace(connection, settings, namespace, relation=relation)


def restore(
    version: Annotated[
        str, typer.Option("--version", metavar="N|TAG", help="Version to restore (see `history`, `tag`).")
    ],
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore an earlier version as a new version.

    The history is kept.
    """
    from parquetry.storage.lake.rewrite import restore_version

    settings = settings_for(config, corpus)
    # A deleted namespace can be restored.
    _check_namespace(settings, namespace, "document_history")
    lake = _open(settings.corpus)
    number = lake.version_of(version)
    done = restore_version(lake, number, new_stamp(), namespace)
    removed = sum(row.removed for row in done.documents)
    back = len(done.documents) - removed
    forgotten = sum(row.removed for row in done.entries)
    known = len(done.entries) - forgotten
    if as_json:
        print_json(
            {
                "run_id": done.run_id,
                "version": done.version,
                "restored_version": number,
                "documents": {"restored": back, "removed": removed},
                "entries": {"restored": known, "removed": forgotten},
            }
        )
    elif not done.rows:
        tell(f"Corpus {settings.corpus.root} is as it was at version {number}; nothing to restore.")
    else:
        tell(
            f"{counted(back, 'document is as it was', 'documents are as they were')} at version {number}, "
            f"{counted(removed, 'was', 'were')} not there and left."
        )
        if done.entries:
            tell(
                f"{counted(known, 'entry is as it was', 'entries are as they were')} then, "
                f"{counted(forgotten, 'was', 'were')} not there and left."
            )
        tell(f"Corpus {settings.corpus.root}: published version {done.version}.")
        tell("The next refresh brings what its sources hold by then.")


def remove(
    documents: Annotated[
        list[str], typer.Argument(metavar="DOCUMENT", help="Ids, uris, paths, or globs over paths and names.")
    ],
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove documents from the corpus; earlier versions keep them.

    The bytes of uploads are deleted.
    """
    from parquetry.storage.lake.rewrite import remove_documents

    settings = settings_for(config, corpus)
    _check_namespace(settings, namespace)
    store = UploadStore(settings)
    deleted: set[str] = set()

    def delete_bytes(rows: Sequence[DocumentRow]) -> None:
        # An upload that is still there would come back with the next refresh.
        for row in rows:
            if row.source == UPLOADS and store.delete(row.namespace, row.path):
                deleted.add(row.uri)

    done = remove_documents(_open(settings.corpus), documents, new_stamp(), namespace, delete_bytes)
    if as_json:
        removed = [row.uri for row in done.rows]
        told = {"run_id": done.run_id, "version": done.version, "removed": removed, "deleted": sorted(deleted)}
        print_json(told)
        return
    for row in done.rows:
        tell(f"removed {row.path}" + (", and deleted its bytes" if row.uri in deleted else ""))
    tell(f"Corpus {settings.corpus.root}: published version {done.version}.")
    if any(row.source != UPLOADS for row in done.rows):
        tell("A document that is still in its source comes back at the next refresh unless its source excludes it.")
