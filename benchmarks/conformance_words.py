"""Cases of the conformance check that the schema states in words, or that its examples and guides show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.conformance_client import Call, fault_of
from benchmarks.conformance_rules import Case
from benchmarks.conformance_scene import BATCH, BATCHES, DAY, FILES, OAK, STORE, STORE_FILE, STORES, Scene

Check = Callable[[Scene], str | None]
"""scene -> what is wrong; None if nothing is"""
_CREATE_STORE, _CREATE_BATCH = f"POST {STORES}", f"POST {BATCHES}"


def _said(right: bool, otherwise: str) -> str | None:
    return None if right else otherwise


def _refuses(operation: str, body: dict[str, Any], param: str | None) -> Check:
    def check(scene: Scene) -> str | None:
        call = scene.calls(operation)[0]
        return fault_of(scene.client.send(Call(operation, call.path, body=body)), 400, param)

    return check


def _static(scene: Scene) -> str | None:
    size = {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 51}
    body = {"file_id": scene.oak, "chunking_strategy": {"type": "static", "static": size}}
    return fault_of(scene.client.send(Call(f"POST {FILES}", scene.stored, body=body)), 400, "chunking_strategy")


def _unknown_file(operation: str, body: dict[str, Any]) -> Check:
    def check(scene: Scene) -> str | None:
        call = scene.calls(operation)[0]
        return fault_of(scene.client.send(Call(operation, call.path, body=body)), 404)

    return check


def _both(scene: Scene) -> str | None:
    body = {"file_ids": [scene.oak], "files": [{"file_id": scene.ash}]}
    return fault_of(scene.client.send(Call(_CREATE_BATCH, scene.stored, body=body)), 400)


def _last_error(code: str) -> Check:
    def check(scene: Scene) -> str | None:
        file = scene.broken if code == "invalid_file" else scene.unsupported
        found = scene.client.ask(Call(f"GET {STORE_FILE}", {**scene.stored, "file_id": file}))
        error = found["last_error"] or {}
        right = found["status"] == "failed" and error.get("code") == code and error.get("message")
        return _said(bool(right), f"is {found['status']}, {error.get('code')}")

    return check


def _batch_counts(scene: Scene) -> str | None:
    batch = scene.client.ask(Call(f"GET {BATCH}", {**scene.stored, "batch_id": scene.batch}))
    counts = batch["file_counts"]
    return _said((batch["status"], counts["completed"], counts["failed"]) == ("completed", 1, 1), f"{counts}")


def _cancelled(scene: Scene) -> str | None:
    batch = scene.new_batch(file_ids=[scene.upload(f"{number}.md", OAK + b"%d" % number) for number in range(9)])
    ids = {**scene.stored, "batch_id": batch}
    answered = scene.client.ask(Call(f"POST {BATCH}/cancel", ids))
    later = scene.client.ask(Call(f"GET {BATCH}", ids))
    return _said(answered["status"] == later["status"] == "cancelled", f"is {later['status']}")


def _batch_expires(scene: Scene) -> str | None:
    made = scene.client.ask(Call("POST /files", form={"file": ("a.jsonl", OAK), "purpose": "batch"}))
    return _said(made.get("expires_at") == made["created_at"] + 30 * DAY, "does not expire after 30 days")


def _gone(operation: str, following: str) -> Check:
    def check(scene: Scene) -> str | None:
        call = scene.calls(operation)[0]
        answered = scene.client.ask(call)
        id_ = call.path.get("file_id", call.path.get("vector_store_id"))
        if answered.get("id") != id_ or answered.get("deleted") is not True:
            return "does not say that it is deleted"
        return fault_of(scene.client.send(Call(following, call.path)), 404)

    return check


def _file_stays(scene: Scene) -> str | None:
    call = scene.calls(f"DELETE {STORE_FILE}")[0]
    scene.client.ask(call)
    stays = scene.client.send(Call("GET /files/{file_id}", {"file_id": call.path["file_id"]}))
    return _said(stays.is_success, "is deleted itself")


def _file_leaves(scene: Scene) -> str | None:
    file, store = scene.upload("gone.md"), scene.new_store()
    scene.attach(store, file)
    scene.client.ask(Call("DELETE /files/{file_id}", {"file_id": file}))
    ids = {"vector_store_id": store, "file_id": file}
    return fault_of(scene.client.send(Call(f"GET {STORE_FILE}", ids)), 404)


def _empty_changes(scene: Scene) -> str | None:
    store = scene.new_store(name="before", metadata={"a": "b"})
    changed = scene.client.ask(Call(f"POST {STORE}", {"vector_store_id": store}, body={"name": "after"}))
    return _said((changed["name"], changed["metadata"]) == ("after", {"a": "b"}), "changes what was left out")


_METADATA = {
    "metadata of 17 keys": ({f"key{number}": "a" for number in range(17)}),
    "metadata with a key of 65 characters": {"x" * 65: "a"},
    "metadata with a value of 513 characters": {"a": "x" * 513},
}
CHECKS: tuple[tuple[str, str, Check], ...] = (
    *(
        (_CREATE_STORE, name, _refuses(_CREATE_STORE, {"metadata": given}, "metadata"))
        for name, given in _METADATA.items()
    ),
    *(
        (f"POST {STORE}", name, _refuses(f"POST {STORE}", {"metadata": given}, "metadata"))
        for name, given in _METADATA.items()
    ),
    (f"POST {STORE}", "fields that are left out stay", _empty_changes),
    (_CREATE_STORE, "unknown file", _unknown_file(_CREATE_STORE, {"file_ids": ["file-unknown"]})),
    (f"POST {FILES}", "unknown file", _unknown_file(f"POST {FILES}", {"file_id": "file-unknown"})),
    (_CREATE_BATCH, "unknown file", _unknown_file(_CREATE_BATCH, {"file_ids": ["file-unknown"]})),
    (f"POST {FILES}", "overlap of more than half a chunk", _static),
    (_CREATE_BATCH, "`file_ids` and `files`", _both),
    (_CREATE_BATCH, "neither `file_ids` nor `files`", _refuses(_CREATE_BATCH, {}, None)),
    (f"GET {STORE_FILE}", "`invalid_file` for a damaged file", _last_error("invalid_file")),
    (f"GET {STORE_FILE}", "`unsupported_file` for another kind", _last_error("unsupported_file")),
    (f"GET {BATCH}", "a file that fails leaves the others", _batch_counts),
    (f"POST {BATCH}/cancel", "`cancelled` at once", _cancelled),
    ("POST /files", "purpose `batch` expires after 30 days", _batch_expires),
    ("DELETE /files/{file_id}", "gone", _gone("DELETE /files/{file_id}", "GET /files/{file_id}")),
    ("DELETE /files/{file_id}", "leaves its stores", _file_leaves),
    (f"DELETE {STORE}", "gone", _gone(f"DELETE {STORE}", f"GET {STORE}")),
    (f"DELETE {STORE_FILE}", "gone", _gone(f"DELETE {STORE_FILE}", f"GET {STORE_FILE}")),
    (f"DELETE {STORE_FILE}", "the file itself stays", _file_stays),
)
"""operation, what it promises, check"""


def cases_in_words(scene: Scene) -> Iterator[Case]:
    """Yield the cases that the schema states in words."""
    for operation, name, check in CHECKS:
        yield Case(operation, "", name, check(scene))


def cases_of_expiry(scene: Scene, expire: Callable[[str], None]) -> Iterator[Case]:
    """Yield the cases of stores whose days are over.

    Args:
        scene: files and stores.
        expire: lets the time of a store pass.
    """
    store = scene.new_store(expires_after={"anchor": "last_active_at", "days": 1})
    scene.attach(store, scene.oak)
    ids = {"vector_store_id": store}
    expire(store)
    found = scene.client.ask(Call(f"GET {STORE}", ids))
    yield Case(f"GET {STORE}", "", "`expired` after its days", _said(found["status"] == "expired", found["status"]))
    search = Call(f"POST {STORE}/search", ids, body={"query": "oak"})
    yield Case(search.operation, "", "expired store", fault_of(scene.client.send(search), 400))
    attach = Call(f"POST {FILES}", ids, body={"file_id": scene.ash})
    yield Case(attach.operation, "", "expired store", fault_of(scene.client.send(attach), 400))
