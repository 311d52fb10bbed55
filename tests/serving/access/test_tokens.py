"""Tokens are stored hashed, checked against the file on each request, and refused as soon as they are revoked."""

import os
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest

from parquetry.errors import SettingsError, StorageError
from parquetry.serving.access.last_used import INTERVAL, LastUsed
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.token_table import FILE
from parquetry.serving.access.token_text import new_token
from parquetry.serving.access.tokens import TokenStore


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self):
        self.seconds = 2_000_000_000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    with TokenStore(tmp_path / "state", clock) as opened:
        yield opened


def test_bearer_of_a_token_is_its_principal(store):
    token, plain = store.create(
        "app", user_id="ada", org_id="acme", namespaces=["hr", "law"], default_namespace="law", rights=["write", "read"]
    )
    expected = Principal(token.id, "ada", "acme", ("hr", "law"), frozenset({"read", "write"}), "law")
    assert store.find(plain) == store.check(plain) == expected
    assert store.list() == [token]


def test_token_is_in_no_file_and_no_list(store, tmp_path):
    token, plain = store.create("app")
    store.find(plain)
    store.close()
    content = b"".join(file.read_bytes() for file in (tmp_path / "state").iterdir())
    assert token.shown.encode() in content
    assert plain[12:].encode() not in content
    assert plain[12:] not in repr(token)


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files are those of Unix")
def test_files_are_readable_by_their_owner_only(store, tmp_path):
    store.create("app")
    files = list((tmp_path / "state").iterdir())
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_token_that_is_not_valid_is_refused_with_a_reason(store, clock):
    _, plain = store.create("app", expires_at=datetime.fromtimestamp(clock.seconds, UTC) + timedelta(days=1))
    revoked, other = store.create("other")
    store.revoke(revoked.id)
    assert store.check(other) == "revoked"
    assert store.check(new_token()) == "unknown"
    assert store.check("pqt_") == store.check(f"{plain}x") == store.check("Größe") == "malformed"
    clock.seconds += 24 * 3600 - 1
    assert isinstance(store.check(plain), Principal)
    clock.seconds += 1
    assert store.check(plain) == "expired"
    assert store.find(plain) is store.find(other) is None


REVOKE = """
import sys
from pathlib import Path
from parquetry.serving.access.tokens import TokenStore
with TokenStore(Path(sys.argv[1])) as store:
    store.revoke(sys.argv[2])
"""


def test_token_that_another_process_revokes_is_refused_by_the_next_request_everywhere(tmp_path):
    """Each worker has a store of its own, which was used before, so that nothing is opened anew."""
    workers = [TokenStore(tmp_path) for _ in range(4)]
    token, plain = workers[0].create("app")
    assert all(worker.find(plain) for worker in workers for _ in range(3))
    subprocess.run([sys.executable, "-c", REVOKE, str(tmp_path), token.id], check=True)
    assert [worker.check(plain) for worker in workers] == ["revoked"] * 4
    for worker in workers:
        worker.close()


def test_token_that_another_process_creates_is_accepted_by_the_next_request(tmp_path):
    with TokenStore(tmp_path) as worker, TokenStore(tmp_path) as command:
        assert worker.list() == []
        _, plain = command.create("app")
        assert worker.find(plain) is not None


def test_tokens_of_a_file_that_was_deleted_or_replaced_are_refused(tmp_path):
    """SQLite would go on reading the deleted file, for as long as the process lives."""
    with TokenStore(tmp_path / "a") as store, TokenStore(tmp_path / "b") as other:
        _, plain = store.create("app")
        _, late = other.create("late")
        assert store.find(plain) is not None
        (tmp_path / "a" / FILE).unlink()
        assert store.check(plain) == "unknown"
        other.close()
        (tmp_path / "b" / FILE).replace(tmp_path / "a" / FILE)
        assert store.check(plain) == "unknown"
        assert isinstance(store.check(late), Principal)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_child_of_a_process_checks_tokens_on_its_own(store):
    """A connection of SQLite that two processes share can damage the file."""
    token, plain = store.create("app")
    assert store.find(plain) is not None
    child = os.fork() if not _threads() else None
    if child == 0:
        found = store.check(plain)
        os._exit(0 if isinstance(found, Principal) else 1)
    if child is not None:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.revoke(token.id)
    assert store.check(plain) == "revoked"


def _threads():
    return sys.version_info >= (3, 12) and threading.active_count() > 1


def test_last_use_is_written_once_a_minute_and_by_no_request(tmp_path, clock):
    with TokenStore(tmp_path, clock) as setup:
        _, plain = setup.create("app")

    def last_used():
        with TokenStore(tmp_path, clock) as reading:
            return reading.list()[0].last_used_at.timestamp()

    for moved, written in ((0, 0), (INTERVAL - 1, 0), (1, INTERVAL), (INTERVAL - 1, INTERVAL)):
        clock.seconds += moved
        with TokenStore(tmp_path, clock) as store:
            for _ in range(100):
                store.find(plain)
            # Closing writes what waits.
        assert last_used() == 2_000_000_000 + written


def test_use_is_written_while_the_service_stays_open(store, tmp_path):
    """A service is open for months."""
    token, _ = store.create("app")
    waited = threading.Event()
    writer = LastUsed(tmp_path / "state", gathered=0.01)
    writer.note(token.id, 2_000_000_000, None)
    for _ in range(200):
        if store.list()[0].last_used_at is not None:
            break
        waited.wait(0.05)
    assert store.list()[0].last_used_at.timestamp() == 2_000_000_000
    writer.close()


def test_requests_go_on_while_another_process_holds_the_lock_to_write(store, tmp_path):
    _, plain = store.create("app")
    other = sqlite3.connect(tmp_path / "state" / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert [store.find(plain) is not None for _ in range(50)] == [True] * 50
    other.execute("ROLLBACK")
    other.close()


def test_many_threads_find_tokens_while_others_are_created_and_revoked(store):
    kept = [store.create(f"kept {number}") for number in range(4)]
    wrong, stop = [], threading.Event()

    def ask(token, plain):
        while not stop.is_set():
            found = store.check(plain)
            if not isinstance(found, Principal) or found.token_id != token.id:
                wrong.append(found)

    threads = [threading.Thread(target=ask, args=each) for each in kept]
    for thread in threads:
        thread.start()
    for number in range(30):
        token, plain = store.create(f"other {number}")
        assert store.find(plain) is not None
        store.revoke(token.id)
        assert store.find(plain) is None
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 100])
def test_file_that_cannot_be_read_admits_nobody(tmp_path, damage):
    with TokenStore(tmp_path) as store:
        _, plain = store.create("app")
    (tmp_path / FILE).write_bytes(damage)
    if damage:
        with pytest.raises(StorageError, match=r"tokens\.db: .*tokens cannot be checked"):
            TokenStore(tmp_path)
    else:
        with TokenStore(tmp_path) as store:
            assert store.check(plain) == "unknown"


def test_table_that_is_lost_while_the_service_runs_is_an_error_and_no_refusal(store, tmp_path):
    """A refusal would tell every caller that their token is wrong."""
    _, plain = store.create("app")
    other = sqlite3.connect(tmp_path / "state" / FILE)
    other.execute("DROP TABLE tokens")
    other.commit()
    other.close()
    with pytest.raises(StorageError, match="no such table"):
        store.find(plain)


def test_path_that_sqlite_cannot_open_is_refused_in_time(tmp_path):
    with pytest.raises(SettingsError, match=r"set `state` in \[serve\] to a folder with a shorter path"):
        TokenStore(tmp_path / "/".join(["long"] * 100))
    assert list(tmp_path.iterdir()) == []
    with TokenStore(tmp_path / ("x" * (470 - len(str(tmp_path)) - 200)) / ("y" * 199)) as store:
        assert store.find(store.create("app")[1]) is not None


def test_file_of_a_newer_program_is_refused(tmp_path):
    TokenStore(tmp_path).close()
    changed = sqlite3.connect(tmp_path / FILE)
    changed.execute("PRAGMA user_version = 99")
    changed.close()
    with pytest.raises(StorageError, match="written by a newer program"):
        TokenStore(tmp_path)


def test_revoking_names_one_token_and_can_be_repeated(store, clock):
    first, plain = store.create("first")
    second, other = store.create("second")
    third, last = store.create("third")
    at = clock.seconds
    assert store.revoke(first.id).revoked_at.timestamp() == at
    assert store.revoke(second.shown).id == second.id
    assert store.revoke(last).id == third.id
    clock.seconds += 100
    assert store.revoke(first.id).revoked_at.timestamp() == at
    assert [store.check(each) for each in (plain, other, last)] == ["revoked"] * 3


@pytest.mark.parametrize("which", ["", "nope", "pqt_", "pqt_nope", "%", "' OR 1=1 --"])
def test_revoking_what_is_not_there_revokes_nothing(store, which):
    _, plain = store.create("app")
    with pytest.raises(SettingsError, match="no token"):
        store.revoke(which)
    assert store.find(plain) is not None


def test_refusal_to_revoke_does_not_repeat_a_token(store):
    plain = new_token()
    with pytest.raises(SettingsError) as refusal:
        store.revoke(plain)
    assert plain[12:] not in str(refusal.value)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"name": ""}, "name '' is empty"),
        ({"name": " app"}, "name ' app' is empty, or has blanks"),
        ({"name": "a\nb"}, "characters that cannot be seen"),
        ({"name": "a" * 201}, "name has 201 characters"),
        ({"user_id": ""}, "user '' is empty"),
        ({"org_id": "a\u202eb"}, "characters that cannot be seen"),
        ({"namespaces": []}, "the list of namespaces is empty"),
        ({"namespaces": ["a/b"]}, "namespace 'a/b' is not valid"),
        ({"namespaces": ["a\n"]}, "is not valid"),
        ({"namespaces": ["a"], "default_namespace": "b"}, "default namespace 'b' is not among"),
        ({"default_namespace": "a b"}, "namespace 'a b' is not valid"),
        ({"rights": []}, "at least one right: search, read, write, admin"),
        ({"rights": ["serach"]}, "no right 'serach'; did you mean"),
        ({"expires_at": datetime(1999, 1, 1, tzinfo=UTC)}, "is in the past"),
    ],
)
def test_value_that_makes_no_sense_is_refused(store, values, told):
    with pytest.raises(SettingsError) as refusal:
        store.create(**{"name": "app", **values})
    assert told in str(refusal.value)
    assert store.list() == []


@pytest.mark.parametrize(
    ("namespaces", "given", "stored"),
    [
        (None, None, None),
        (None, "hr", "hr"),
        (["hr", "law"], None, "hr"),
        (["hr", "default"], None, "default"),
        (["hr", "law"], "law", "law"),
    ],
)
def test_requests_that_name_no_namespace_go_to_one_that_the_token_sees(store, namespaces, given, stored):
    _, plain = store.create("app", namespaces=namespaces, default_namespace=given)
    principal = store.find(plain)
    assert principal.default_namespace == stored
    assert principal.namespace(None, "main") == (stored or "main")


def test_tokens_of_a_user_are_deleted_and_no_others(store):
    _, gone = store.create("a", user_id="ada")
    _, kept = store.create("b", user_id="bob")
    assert store.forget("ada") == 1
    assert store.check(gone) == "unknown"
    assert store.find(kept) is not None
