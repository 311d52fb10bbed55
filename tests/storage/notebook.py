"""Entries written directly to a corpus: texts, vectors and decisions by hand, no session and no model."""

from dataclasses import replace
from datetime import timedelta

import numpy as np

from parquetry import ids
from parquetry.model import Access
from parquetry.planning.rows import RunStamp
from parquetry.sessions.ledger.entry_rows import scope_of
from parquetry.sessions.model import Decision, Entry, Spent
from parquetry.storage.entries.entries import EntryText, EntryWriter, Learned
from parquetry.storage.entries.known_entries import KnownEntries
from tests.records import NOW, THEN
from tests.storage.shelf import EMBEDDER

PUBLIC = Access()


def entry(text, access=PUBLIC, namespace="default", kind="fact", **fields):
    """Return an entry with this text."""
    scope = (access.visibility, access.org_id, access.user_id)
    base = Entry(ids.entry_id(namespace, scope, text), namespace, kind, text, access, 0.9, THEN)
    return replace(base, **fields)


ADA = Access("individual", user_id="ada")
OAK, ELM, ASH = entry("The oak is old."), entry("The elm is young."), entry("The ash is tall.")


def decision(number, kind="new", entry=None, *, session="s-1", run="run", **fields):
    """Return a verdict on a draft with the entry's text."""
    said_at = fields.pop("said_at", THEN)
    base = Decision(
        decision_id=ids.decision_id(run, session or "", number),
        namespace=entry.namespace if entry else "default",
        kind=kind,
        judge="model",
        at=NOW + timedelta(seconds=number),
        run_id=run,
        session_id=session,
        session_uri=session and f"file:///chats/{session}.json",
        user_id=entry and entry.access.user_id,
        said_at=said_at,
        evidence=("m1",),
        text=entry.text if entry else "",
        entry_kind=entry and entry.kind,
        access=entry and entry.access,
        confidence=0.9,
        entry_id=entry and entry.entry_id,
        adds=(entry.entry_id,) if entry and kind in ("new", "merged", "contradicts") else (),
        retires=(),
        links=(),
        candidates=(),
        reasoning="because",
        reason=None,
        undoes=None,
        spent=Spent("model", "v1"),
    )
    return replace(base, **fields)


def vector(text, dimension=4):
    """Return the vector of a text; equal texts have equal vectors."""
    seed = int(ids.text_hash(text)[:8], 16)
    return np.random.default_rng(seed).normal(size=dimension).astype(np.float32)


def text_of(entry, embedder=EMBEDDER):
    return EntryText(entry, embedder, vector(entry.text, int(embedder.rpartition("@")[2])), 3)


class Notebook:
    """The entries of a shelf, and the runs that learned them."""

    def __init__(self, shelf):
        self.shelf = shelf
        self.lake = shelf.lake
        self.runs = 0
        self.run_ids = "learn-{}"

    def writer(self):
        self.runs += 1
        return EntryWriter(self.lake, RunStamp(self.run_ids.format(self.runs), NOW + timedelta(hours=self.runs)))

    def learn(self, *entries, session="s-1", embedder=EMBEDDER, base=None):
        """Publish new entries of a session, in a separate run."""
        writer = self.writer()
        run = self.run_ids.format(self.runs)
        made = [decision(i, entry=each, session=session, run=run) for i, each in enumerate(entries)]
        return self.decide(made, entries, writer=writer, embedder=embedder, base=base)

    def decide(self, decisions, entries=(), writer=None, embedder=EMBEDDER, base=None):
        """Publish decisions, with the entries that they add."""
        writer = writer or self.writer()
        mine = [replace(each, run_id=self.run_ids.format(self.runs)) for each in decisions]
        learned = Learned(mine, [text_of(each, embedder) for each in entries])
        return writer.publish(base or self.lake.snapshot(), learned)

    def live(self, version=None):
        """Return text -> number of sessions that contain it."""
        with self.shelf.connect(version) as connection:
            return dict(connection.execute("SELECT text, sessions FROM entries").fetchall())

    def known(self, *scopes):
        return KnownEntries(self.lake.snapshot(), scopes or [scope_of("default", PUBLIC)])

    def ledger(self, columns="*"):
        with self.shelf.connect() as connection:
            return connection.execute(f"SELECT {columns} FROM decisions ORDER BY sequence, number").fetchall()
