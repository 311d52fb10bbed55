"""Candidates for comparison with a new statement: only the live entries of its scope."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from parquetry.errors import StorageError
from parquetry.model import Access
from parquetry.sessions.ledger.entry_rows import scope_of
from parquetry.storage.database import reading
from parquetry.storage.entries import known_entries
from parquetry.storage.entries.entries import Learned
from parquetry.storage.files.layout import holds_entries
from tests.storage.notebook import ADA, ELM, OAK, PUBLIC, decision, entry, text_of, vector
from tests.storage.shelf import EMBEDDER


def identities(found):
    return [[each.entry_id for each, _ in one] for one in found]


def test_candidates_are_those_of_brute_force_in_blocks_of_any_size(notebook, monkeypatch):
    entries = [entry(f"Statement number {number}.") for number in range(40)]
    notebook.learn(*entries)
    wanted = np.stack([vector(f"query {number}") * (number + 1) for number in range(7)])
    matrix = np.stack([vector(each.text) for each in entries])
    cosines = (wanted / np.linalg.norm(wanted, axis=1, keepdims=True)) @ (
        matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    ).T
    expected = [[entries[i].entry_id for i in np.argsort(-row)[:5] if row[i] >= 0.2] for row in cosines]
    assert sum(map(len, expected)) > 20
    for at_a_time in (4_000_000, 50):
        monkeypatch.setattr(known_entries, "SCORES_AT_A_TIME", at_a_time)
        with notebook.known() as known:
            found = known.candidates(scope_of("default", PUBLIC), wanted, EMBEDDER, 5, 0.2)
        assert identities(found) == expected


def test_candidates_come_from_exactly_one_scope(notebook):
    said = "The oak is old."
    scopes = {
        "public": PUBLIC,
        "ada": ADA,
        "eve": Access("individual", user_id="eve"),
        "acme": Access("organization", org_id="acme"),
        "ada of acme": Access("individual", org_id="acme", user_id="ada"),
    }
    entries = {name: entry(said, access) for name, access in scopes.items()}
    elsewhere = entry(said, ADA, namespace="other")
    notebook.learn(*entries.values(), elsewhere)
    assert len({each.entry_id for each in (*entries.values(), elsewhere)}) == 6
    asked = [scope_of("default", access) for access in scopes.values()]
    with notebook.known(*asked) as known:
        for (name, access), scope in zip(scopes.items(), asked, strict=True):
            ((found,),) = known.candidates(scope, vector(said)[None], EMBEDDER, 5, -1)
            assert found == (entries[name], 1.0), name
            assert found[0].access == access
            assert set(known.entries(scope)) == {entries[name].entry_id}


def test_retired_entries_and_documents_are_no_candidates(notebook):
    notebook.shelf.publish({"a.md": ["The oak is old."]}, vectors=[vector("The oak is old.")])
    notebook.learn(OAK)
    notebook.decide([decision(0, "merged", ELM, session="s-2", retires=(OAK.entry_id,))], [ELM])
    with notebook.known() as known:
        found = known.candidates(scope_of("default", PUBLIC), vector(OAK.text)[None], EMBEDDER, 5, -1)
    assert identities(found) == [[ELM.entry_id]]


def test_text_without_a_vector_is_found_by_its_id_alone(notebook):
    writer = notebook.writer()
    made = decision(0, entry=OAK, run="learn-1")
    writer.publish(notebook.lake.snapshot(), Learned([made], [replace(text_of(OAK), vector=np.zeros(4, np.float32))]))
    scope = scope_of("default", PUBLIC)
    with notebook.known() as known:
        assert known.candidates(scope, vector("x")[None], EMBEDDER, 5, -1) == [[]]
        assert known.entries(scope, [OAK.entry_id, "unknown"]) == {OAK.entry_id: OAK}


def test_nothing_of_documents_is_read_to_compare_entries(notebook):
    # Enough documents that their revisions surround the entry's, and no statistics rule them out.
    notebook.shelf.publish({f"{number}.md": ["one"] for number in range(40)})
    notebook.learn(OAK)
    (documents,) = (file for file in notebook.lake.snapshot().files["chunks"] if not holds_entries(file))
    content = Path(documents).read_bytes()
    footer = len(content) - int.from_bytes(content[-8:-4], "little") - 8
    Path(documents).write_bytes(bytes(footer) + content[footer:])
    with notebook.shelf.connect() as connection, pytest.raises(StorageError), reading():
        connection.execute("SELECT sum(revision) FROM all_chunks").fetchall()
    with notebook.known() as known:
        found = known.candidates(scope_of("default", PUBLIC), vector("x")[None], EMBEDDER, 5, -1)
    assert identities(found) == [[OAK.entry_id]]


def test_entries_of_another_embedder_are_not_compared_until_they_are_embedded_again(notebook):
    notebook.learn(OAK)
    scope = scope_of("default", PUBLIC)
    with notebook.known() as known:
        assert known.candidates(scope, vector(OAK.text, 3)[None], "other@3", 5, -1) == [[]]
        assert known.stale("default", "other@3") == [OAK]
        assert known.stale("default", EMBEDDER) == []
    notebook.decide([], [OAK], embedder="other@3")
    assert notebook.live() == {"The oak is old.": 1}
    with notebook.known() as known:
        assert identities(known.candidates(scope, vector(OAK.text, 3)[None], "other@3", 5, 0.9)) == [[OAK.entry_id]]
        assert known.stale("default", "other@3") == []
