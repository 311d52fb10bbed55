"""Responses are kept for their owner alone, until they expire or are deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parquetry.serving.access.principals import ANONYMOUS, OPERATOR, Principal
from parquetry.serving.service.response_store import ResponseStore, StoredResponse, owner_of

ADA = Principal("t1", "ada", "acme", None, frozenset({"search"}), None)
BOB = Principal("t2", "bob", "acme", None, frozenset({"search", "admin"}), None)
STORED = StoredResponse("resp_1", "resp_0", [{"role": "user", "content": "Grüße"}], {"id": "resp_1", "output": []})


@pytest.fixture
def store(tmp_path):
    opened = ResponseStore(tmp_path)
    yield opened
    opened.close()


def test_a_response_is_its_owners(store, tmp_path):
    store.save(STORED, ADA, 1, 9)
    others = ResponseStore(tmp_path)
    assert others.get("resp_1", ADA) == STORED
    # Not another person's, not another token's of the same person, and not an administrator's.
    for caller in (BOB, replace(ADA, token_id="t3"), OPERATOR, ANONYMOUS):
        assert others.get("resp_1", caller) is None
        assert not others.delete("resp_1", caller)
    others.close()
    assert store.get("resp_2", ADA) is None


def test_the_operator_has_responses_and_an_anonymous_caller_has_none(store):
    store.save(STORED, OPERATOR, 1, 9)
    assert store.get("resp_1", OPERATOR) == STORED
    assert owner_of(ANONYMOUS) is None


def test_what_is_deleted_is_gone(store, tmp_path):
    store.save(STORED, ADA, 1, 9)
    assert store.delete("resp_1", ADA)
    assert store.get("resp_1", ADA) is None
    assert not store.delete("resp_1", ADA)
    assert not any(b"Gr" in file.read_bytes() for file in tmp_path.iterdir())


def test_what_has_expired_is_gone_and_the_next_write_deletes_it(store):
    store.save(STORED, ADA, -1, 9)
    assert store.get("resp_1", ADA) is None
    assert not store.delete("resp_1", ADA)
    store.save(replace(STORED, id="resp_2"), ADA, 1, 9)
    assert store._database.rows("SELECT id FROM responses") == [("resp_2",)]


def test_file_is_its_owners_alone(store, tmp_path):
    assert (tmp_path / "responses.db").stat().st_mode & 0o077 == 0


def test_newer_responses_take_the_place_of_their_owners_oldest(store):
    for number in range(1, 5):
        for owner in (ADA, BOB) if number == 1 else (ADA,):
            store.save(replace(STORED, id=f"resp_{owner.token_id}_{number}"), owner, 1, 3)
    kept = [number for number in range(1, 5) if store.get(f"resp_t1_{number}", ADA) is not None]
    assert kept == [2, 3, 4]
    # What another one keeps does not count.
    assert store.get("resp_t2_1", BOB) is not None
