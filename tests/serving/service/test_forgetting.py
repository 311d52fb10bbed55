"""Everything that a service keeps of a user is erased from its state, and nothing of others."""

from parquetry.model import Access, ChunkSize
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.tokens import TokenStore
from parquetry.serving.files.content import FileFolder
from parquetry.serving.files.file_records import FileRecords
from parquetry.serving.files.model import KeptFile, VectorStore
from parquetry.serving.files.store_records import StoreRecords
from parquetry.serving.files.table import ADDED, FILE, SCHEMA
from parquetry.serving.jobs.reviews import ReviewStore
from parquetry.serving.jobs.store import JobStore
from parquetry.serving.service.feedback import FeedbackStore, Judge, JudgedResult
from parquetry.serving.service.forgetting import forget_in_state
from parquetry.serving.service.response_store import ResponseStore, StoredResponse
from parquetry.serving.service.session_inbox import keep_session
from parquetry.serving.state.database import StateDatabase
from parquetry.sessions.merge.effects import MergeProposal

ADA = {"user_id": "ada", "org_id": "acme", "token_id": None}
BOB = {**ADA, "user_id": "bob"}


def filled(state):
    """Keep one thing of each kind for each of two users."""
    jobs, feedback, responses, reviews = JobStore(state), FeedbackStore(state), ResponseStore(state), ReviewStore(state)
    with TokenStore(state) as tokens:
        for owner in (ADA, BOB):
            name = owner["user_id"]
            tokens.create(f"token of {name}", user_id=name)
            jobs.submit("ingest", "default", {"uploads": [f"planted-{name}"]}, owner)
            judge = Judge(name, f"token-of-{name}")
            feedback.judge(judge, f"planted-{name}", JudgedResult("default", "d1"), relevant=True)
            feedback.judge_answer(judge, "a1", f"planted-{name}", good=False, model="m")
            keep_session(state, "default", (name, "acme"), "s1", [{"role": "user", "content": f"planted-{name}"}], {})
            caller = Principal(name, name, None, None, frozenset(), None)
            responses.save(StoredResponse(f"resp_{name}", None, [], {"output": f"planted-{name}"}), caller, 1, 9)
            said = f"planted-{name}"
            reviews.ask(
                f"job-{name}", [MergeProposal(name, "file:///s", said, (said,), said, "why", "default", Access(), name)]
            )
            keep_file(state, name)
    for store in (jobs, feedback, responses, reviews):
        store.close()


def keep_file(state, name):
    """Keep a file of a user, in a vector store with the file of everybody."""
    tables, content, mine = (
        StateDatabase(state, FILE, SCHEMA, "files", ADDED),
        FileFolder(state),
        Access("individual", None, name),
    )
    files, stores = FileRecords(tables), StoreRecords(tables)
    for id_, access in ((f"file-{name}", mine), ("file-all", Access())):
        written = content.new()
        written.write(f"planted-{name}".encode() if access is mine else b"for all")
        written.finish(id_)
        if id_ not in files.known():
            files.add(
                KeptFile(
                    id_, f"planted-{name}" if access is mine else "all", 1, "batch", None, 1, None, "default", access
                )
            )
    stores.add(VectorStore(f"vs_{name}", f"planted-{name}", "default", mine, 1, 1, None, {}))
    stores.attach(
        f"vs_{name}", [(each, {"of": f"planted-{name}"}, ChunkSize(100, 0)) for each in files.known()], f"b_{name}"
    )
    files.close()


def bytes_of(state):
    return b"".join(file.read_bytes() for file in state.rglob("*") if file.is_file())


def test_user_is_erased_and_others_stay(tmp_path):
    filled(tmp_path)
    # A service goes on, with the files open.
    others = JobStore(tmp_path), FeedbackStore(tmp_path), ResponseStore(tmp_path)
    assert b"planted-ada" in bytes_of(tmp_path)
    done = forget_in_state(tmp_path, "ada")
    assert done.parts == {
        "tokens": 1,
        "audit_events": 0,
        "jobs": 1,
        "reviews": 1,
        "feedback": 2,
        "sessions": 1,
        "responses": 1,
        "files": 1,
    }
    left = bytes_of(tmp_path)
    assert b"planted-ada" not in left
    assert left.count(b"planted-bob") >= 4
    assert b"for all" in left
    for each in others:
        each.close()
    assert forget_in_state(tmp_path, "ada").parts == dict.fromkeys(done.parts, 0)


def test_nothing_happens_where_no_service_ever_was(tmp_path):
    assert not any(forget_in_state(tmp_path / "service", "ada").parts.values())
    assert not (tmp_path / "service").exists()
