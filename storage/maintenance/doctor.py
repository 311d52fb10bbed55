"""Checks of a corpus: everything visible exists, is complete and consistent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import basename

from parquetry import ids
from parquetry.errors import StorageError
from parquetry.planning.compaction import MANY_FILES, SMALL_BYTES
from parquetry.settings.sections import SearchSettings
from parquetry.sources.uploads.store import UploadStore
from parquetry.storage.connect import rolled_back
from parquetry.storage.database import Connection, tuples
from parquetry.storage.entries.entry_checks import ENTRY_CHECKS
from parquetry.storage.files.conditional_writes import probe
from parquetry.storage.files.filesystem import FileInfo, filesystem_at
from parquetry.storage.files.layout import ANSWERS, INDEX, LOG, PROBE, SERVICE, STAGING, TABLES, UPLOADS, Layout, Table
from parquetry.storage.index.check import disagreements
from parquetry.storage.index.folder import IndexFolder
from parquetry.storage.lake.commits import open_table
from parquetry.storage.lake.damaged_shards import readable_values
from parquetry.storage.lake.file_faults import changed_files, whole_files
from parquetry.storage.lake.knowledge_views import IS_DOCUMENT, IS_ENTRY
from parquetry.storage.lake.lake import Lake, Snapshot
from parquetry.storage.lake.log_check import log_faults
from parquetry.storage.lake.replace_files import gave_way
from parquetry.storage.lake.snapshot_views import connect_snapshot
from parquetry.storage.lake.staging import commit_name
from parquetry.storage.maintenance.findings import Finding, finding_of
from parquetry.storage.maintenance.old_secrets import find_secrets
from parquetry.storage.maintenance.upload_checks import upload_findings

SAMPLE_DOCUMENTS = 2000
"""documents whose spans are checked, unless all are requested"""
_NAMED = 3
"""paths named of a file"""


@dataclass(frozen=True, slots=True)
class Checkup:
    """The result of all checks."""

    root: str
    version: int
    documents: int
    chunks: int
    spans_checked: int
    """number of documents whose chunks were compared with their text"""
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        return not any(finding.severity == "problem" for finding in self.findings)


def examine(
    lake: Lake, settings: SearchSettings | None = None, *, quick: bool = False, uploads: UploadStore | None = None
) -> Checkup:
    """Check a corpus; change nothing.

    Args:
        lake: the corpus, with a schema version that this program knows.
        settings: give the location of its search index.
        quick: True to read the ends of files and the texts of a sample of documents instead of every byte.
        uploads: documents that were handed in, which are checked, too.

    Raises:
        StorageError: the log of a table cannot be read, so that nothing can be checked.
    """
    snapshot = lake.snapshot()
    present = {table: filesystem_at(snapshot.layout.root).entries(snapshot.layout.table(table)) for table in TABLES}
    whole = whole_files(snapshot)
    findings = list(_files(snapshot, present, whole))
    if not quick:
        findings.extend(_damaged_commits(snapshot.layout))
        findings.extend(_missing_commits(snapshot, present, settings or SearchSettings()))
        changed = changed_files(snapshot, whole)
        whole -= changed.keys()
        findings.extend(_rotten(changed))
        findings.extend(_secrets(_readable(snapshot, whole)))
    with connect_snapshot(_readable(snapshot, whole)) as connection:
        for check in (*_CHECKS, *(_Check(*each) for each in ENTRY_CHECKS)):
            findings.extend(_found(connection, check))
        findings.extend(_identities(connection))
        if uploads is not None:
            findings.extend(upload_findings(uploads, connection, quick=quick))
        sample = _sample(connection, quick=quick)
        findings.extend(_found(connection, _SPANS))
        ((documents,),) = tuples(connection, "SELECT count(*) FROM documents")
        ((chunks,),) = tuples(connection, "SELECT count(*) FROM chunks")
    findings.extend(_leftovers(snapshot, present))
    findings.extend(_store(lake))
    if whole.issuperset((*snapshot.files["documents"], *snapshot.files["chunks"])):
        # With a damaged table, the index would differ because of the damage.
        findings.extend(_index(snapshot, settings or SearchSettings(), quick=quick))
    order = {"problem": 0, "note": 1}
    findings.sort(key=lambda finding: order[finding.severity])
    return Checkup(snapshot.layout.root, snapshot.version, documents, chunks, sample, tuple(findings))


# --- files


Present = Mapping[Table, Sequence[FileInfo]]
"""table -> entries of its folder"""


def _files(snapshot: Snapshot, present: Present, whole: frozenset[str]) -> Iterator[Finding]:
    for table in TABLES:
        there = {entry.name for entry in present[table]}
        unusable = [basename(file) for file in snapshot.files[table] if file not in whole]
        missing = [name for name in unusable if name not in there]
        damaged = [name for name in unusable if name in there]
        if missing:
            yield finding_of("missing-file", f"files of {table} are gone", missing)
        if damaged:
            yield finding_of("damaged-file", f"files of {table} cannot be read", damaged)


def _damaged_commits(layout: Layout) -> list[Finding]:
    """Report damaged commits that only older versions are read from."""
    lines = [
        f"{table}/_delta_log/{name} {wrong}"
        for table in (TABLES if layout.is_local else ())
        for name, wrong in sorted(log_faults(layout, table).items())
    ]
    what = "commits below a checkpoint are damaged, so that older versions and the history cannot be read"
    return [finding_of("damaged-commit", what, lines)] if lines else []


def _missing_commits(snapshot: Snapshot, present: Present, settings: SearchSettings) -> Iterator[Finding]:
    """Report lost newest commits of local tables, if the search index has seen the shards that they named."""
    indexed = IndexFolder(snapshot.layout, settings).known_files() if snapshot.layout.is_local else {}
    for table, known in sorted(indexed.items()):
        named = {basename(file) for file in snapshot.files[table]}
        lost = sorted(known & {entry.name for entry in present[table]} - named)
        if lost:
            # What other files replaced is not lost; the index follows later.
            replaced = gave_way(snapshot.layout, table)
            lost = [name for name in lost if name not in replaced]
        if lost:
            missing = f"{table}/_delta_log/{commit_name(open_table(snapshot.layout, table).version() + 1)}"
            what = f"{missing} is missing, or a later one: the search index has seen shards that no commit names"
            yield finding_of("missing-commit", what, lost)


def _rotten(changed: Mapping[str, str]) -> Iterator[Finding]:
    """Report changed files, those of `documents` with their paths; other checks find documents with missing parts."""
    if changed:
        yield finding_of(
            "changed-file",
            "files are not what was written, by their checksums",
            [_where(file, columns) for file, columns in sorted(changed.items())],
        )


def _where(file: str, columns: str) -> str:
    table, name = file.split("/")[-2:]
    told = f"column {columns}" if columns else "between its columns"
    paths = sorted(readable_values(file, "path")) if table == "documents" else []
    shown = ", ".join(paths[:_NAMED]) + (", ..." if len(paths) > _NAMED else "")
    return f"{table}/{name} ({told}{f'; of {shown}' if shown else ''})"


def _readable(snapshot: Snapshot, whole: frozenset[str]) -> Snapshot:
    files: Mapping[Table, tuple[str, ...]] = {
        table: tuple(file for file in snapshot.files[table] if file in whole) for table in TABLES
    }
    return replace(snapshot, files=files)


def _secrets(snapshot: Snapshot) -> Iterator[Finding]:
    held = find_secrets(snapshot)
    if held:
        what = "messages hold secrets that this process knows, from before they were masked"
        count = sum(held.rows.values()) + len(held.left) + len(held.answers)
        yield Finding(
            "secret", "problem", count, f"{what}: {', '.join(held.told())}; `parquetry doctor --fix` masks them"
        )


def _leftovers(snapshot: Snapshot, present: Present) -> Iterator[Finding]:
    unnamed: list[tuple[str, int]] = []
    replaced: list[tuple[str, int]] = []
    unfinished: list[str] = []
    scattered: list[str] = []
    for table in TABLES:
        registered = {basename(file) for file in snapshot.files[table]}
        left = [each for each in present[table] if each.name.endswith(".parquet") and each.name not in registered]
        before = gave_way(snapshot.layout, table) if left else set()
        for entry in left:
            (replaced if entry.name in before else unnamed).append((f"{table}/{entry.name}", entry.size))
        small = sum(entry.size < SMALL_BYTES for entry in present[table] if entry.name in registered)
        scattered += [f"{small} of {table}"] if small >= MANY_FILES else []
        unfinished += [f"{table}/{entry.name}" for entry in present[table] if entry.name.endswith(".unfinished")]
    if replaced:
        size = sum(size for _, size in replaced)
        what = f"shards of {size:,} bytes gave way to others; `parquetry vacuum` deletes what no kept version needs"
        yield finding_of("replaced", what, [name for name, _ in replaced], "note")
    if unnamed:
        size = sum(size for _, size in unnamed)
        what = f"shards of {size:,} bytes belong to no version; crashed runs left them, their vectors are used again"
        yield finding_of("orphan", what, [name for name, _ in unnamed], "note")
    if unfinished:
        what = "files were being written when a run ended; they can be deleted once no run is going on"
        yield finding_of("unfinished", what, unfinished, "note")
    if scattered:
        what = "tables have many small files, which slow down their readers; `parquetry compact` writes them together"
        yield finding_of("small-files", what, scattered, "note")
    strangers = sorted(_strangers(snapshot.layout, present))
    if strangers:
        yield finding_of("unknown-file", "files do not belong to the corpus", strangers, "note")


def _strangers(layout: Layout, present: Present) -> Iterator[str]:
    own = {
        ANSWERS,
        UPLOADS,
        "retention",
        "migrations",
        *TABLES,
        *((INDEX, STAGING, SERVICE) if layout.is_local else (PROBE,)),
    }
    yield from (entry.name for entry in filesystem_at(layout.root).entries(layout.root) if entry.name not in own)
    for table in TABLES:
        for entry in present[table]:
            if entry.name != LOG and not entry.name.endswith((".parquet", ".unfinished")):
                yield f"{table}/{entry.name}"


def _store(lake: Lake) -> Iterator[Finding]:
    """Report the guarantees that the object store lacks."""
    try:
        found = probe(lake.layout)
    except StorageError as error:
        yield Finding("conditional-writes", "note", 1, f"whether the store honours them could not be tried: {error}")
        return
    if found is None:
        return
    if lake.single_writer and found.single_writer_helps:
        what = f"{found.what}; with single_writer = true that is safe as long as exactly one process writes at a time"
        yield Finding("conditional-writes", "note", 1, what)
    else:
        yield Finding("conditional-writes", "problem", 1, f"{found.what}; {found.advice}")


def _index(snapshot: Snapshot, settings: SearchSettings, *, quick: bool) -> Iterator[Finding]:
    version, found = disagreements(snapshot, settings, quick=quick)
    for each in found:
        what = f"{each.what}; `parquetry doctor --fix` builds it again"
        yield finding_of("index", what, each.examples)
    if version is not None and version > snapshot.version:
        yield Finding("rolled-back", "problem", 1, rolled_back(snapshot, version))
    elif version is not None and version != snapshot.version:
        what = f"the search index is at version {version} of {snapshot.version}; the next search brings it up to date"
        yield Finding("index-behind", "note", 1, what)


# --- tables


@dataclass(frozen=True, slots=True)
class _Check:
    name: str
    what: str
    sql: str
    """returns one row for each fault, with an example in the first column"""


_INDEXED = "(SELECT * FROM published WHERE revision <> 0)"
_CHUNK = """filename || ' chunk ' || chunk_index FROM all_chunks AS c JOIN published USING (revision)
    WHERE vector IS NOT NULL"""
_CHECKS = (
    _Check(
        "two-current-rows",
        "documents have two current rows",
        """SELECT any_value(path) FROM document_history AS h SEMI JOIN (
            SELECT namespace, document_id, max(sequence) AS sequence FROM document_history GROUP BY ALL
        ) USING (namespace, document_id, sequence) GROUP BY namespace, document_id HAVING count(*) > 1""",
    ),
    _Check(
        "indexed-without-revision",
        "documents are said to be indexed and have nothing stored",
        f"SELECT path FROM published WHERE status = 'indexed' AND revision = 0 AND ({IS_DOCUMENT} OR {IS_ENTRY})",
    ),
    _Check(
        "missing-text",
        "documents have no stored text",
        f"SELECT path FROM {_INDEXED} ANTI JOIN all_texts USING (revision)",
    ),
    _Check(
        "repeated-text",
        "documents have their text stored more than once",
        f"""SELECT path FROM {_INDEXED} SEMI JOIN
        (SELECT revision FROM all_texts GROUP BY revision HAVING count(*) > 1) USING (revision)""",
    ),
    _Check(
        "chunk-count",
        "documents have not as many chunks as they should",
        f"""SELECT path || ' (' || coalesce(n, 0) || ' of ' || chunks || ')' FROM {_INDEXED}
        LEFT JOIN (SELECT revision, count(*) AS n FROM all_chunks GROUP BY revision) USING (revision)
        WHERE coalesce(n, 0) <> chunks""",
    ),
    _Check(
        "chunk-order",
        "documents have chunks that are not numbered 0, 1, 2, ...",
        f"""SELECT path FROM {_INDEXED} SEMI JOIN (
            SELECT revision FROM all_chunks GROUP BY revision
            HAVING min(chunk_index) <> 0 OR max(chunk_index) <> count(*) - 1
                OR count(DISTINCT chunk_index) <> count(*)
        ) USING (revision)""",
    ),
    _Check(
        "counts",
        "documents whose recorded characters or tokens are not those of their text and chunks",
        f"""SELECT path FROM {_INDEXED} AS d JOIN all_texts AS t USING (revision)
        JOIN (SELECT revision, sum(tokens) AS counted FROM all_chunks GROUP BY revision) USING (revision)
        WHERE length(t.text) <> d.characters OR counted <> d.tokens""",
    ),
    _Check(
        "vector-dimension",
        "chunks have a vector that is not as long as its embedder's",
        f"""SELECT {_CHUNK} AND len(vector) <> regexp_extract(c.embedder, '@(\\d+)$', 1)::INTEGER""",
    ),
    _Check(
        "vector-value",
        "chunks have a vector with values that are not finite, or all zero",
        f"""SELECT {_CHUNK} AND (NOT list_bool_and(list_transform(vector, lambda x: isfinite(x)))
            OR list_bool_and(list_transform(vector, lambda x: x = 0)))""",
    ),
    _Check(
        "embedder",
        "documents were embedded by another model than their chunks",
        f"""SELECT DISTINCT path FROM {_INDEXED} AS d JOIN all_chunks AS c USING (revision)
        WHERE c.embedder <> d.embedder""",
    ),
    _Check(
        "two-embedders",
        "namespaces hold vectors of several models, which no one search can compare; refresh again",
        """SELECT namespace || ' (' || string_agg(DISTINCT embedder, ', ' ORDER BY embedder) || ')' FROM documents
        WHERE revision <> 0 GROUP BY namespace HAVING count(DISTINCT embedder) > 1""",
    ),
)
_SPANS = _Check(
    "span",
    "chunks are not the text at their place",
    """SELECT d.filename || ' chunk ' || c.chunk_index
    FROM sample AS d JOIN all_texts AS t USING (revision) JOIN all_chunks AS c USING (revision)
    WHERE c.start < 0 OR c."end" <= c.start OR substring(t.text, c.start + 1, c."end" - c.start) <> c.text""",
)


def _found(connection: Connection, check: _Check) -> Iterator[Finding]:
    try:
        faults = tuples(connection, f"{check.sql} ORDER BY ALL")
    except StorageError as error:
        # A file with an intact footer and damaged content: the other checks still add information.
        yield Finding(check.name, "problem", 1, f"could not be checked: {error}")
        return
    if faults:
        yield finding_of(check.name, check.what, [str(example) for example, *_ in faults])


def _identities(connection: Connection) -> Iterator[Finding]:
    places = tuples(connection, "SELECT document_id, namespace, source, path FROM documents")
    wrong = [
        path for identity, namespace, source, path in places if identity != ids.document_id(namespace, source, path)
    ]
    said = tuples(connection, "SELECT entry_id, namespace, visibility, org_id, user_id, text FROM entries")
    wrong += [entry for entry, namespace, *scope, text in said if entry != ids.entry_id(namespace, scope, text)]
    if wrong:
        yield finding_of(
            "identity", "documents have an id that is not their place's, or entries one that is not their text's", wrong
        )


def _sample(connection: Connection, *, quick: bool) -> int:
    limit = "" if not quick else f"ORDER BY hash(revision) LIMIT {SAMPLE_DOCUMENTS}"
    connection.execute(f"CREATE TEMP TABLE sample AS SELECT filename, revision FROM {_INDEXED} {limit}")
    ((count,),) = tuples(connection, "SELECT count(*) FROM sample")
    return int(count)
