"""Files and vector stores on which conformance is checked, and a valid request for each operation on them."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.conformance_client import Call, Recorder

OAK = b"# Oak\n\nThe oak table has four legs and costs 640 euros.\n"
ASH = b"# Ash\n\nThe ash bench seats three and costs 210 euros.\n"
BROKEN = b"PK\x03\x04 this is no document at all"
QUESTION = "What does the oak table cost?"
REWRITTEN = "oak table price"
"""query of the language model for any question"""
DAY = 24 * 3600
ATTRIBUTES = {"team": "blue", "year": 2020, "draft": False}
STATIC = {"type": "static", "static": {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 50}}
EQUAL = {"type": "eq", "key": "team", "value": "blue"}
STORES = "/vector_stores"
STORE = f"{STORES}/{{vector_store_id}}"
FILES, BATCHES = f"{STORE}/files", f"{STORE}/file_batches"
STORE_FILE, BATCH = f"{FILES}/{{file_id}}", f"{BATCHES}/{{batch_id}}"


class Scene:
    """A store with files in every state that can be had, in a service.

    Args:
        client: client of the service, whose language model answers `REWRITTEN`.
    """

    def __init__(self, client: Recorder) -> None:
        self.client = client
        self.oak, self.ash = self.upload("oak.md", OAK), self.upload("ash.md", ASH)
        self.broken = self.upload("broken.docx", BROKEN)
        self.unsupported = self.upload("noise.bin", bytes(range(256)) * 8)
        self.store = self.new_store()
        self.stored = {"vector_store_id": self.store}
        for file in (self.unsupported, self.ash):
            self.attach(self.store, file)
        self.attach(self.store, self.oak, attributes=ATTRIBUTES)
        self.batch = self.new_batch(file_ids=[self.oak, self.broken], attributes=ATTRIBUTES)
        self.settled(self.store)
        self._show_what_is_rare()

    def _show_what_is_rare(self) -> None:
        """Ask for answers with properties that only some objects have."""
        expiry = {"expires_after.anchor": "created_at", "expires_after.seconds": 7200}
        self.client.ask(Call("GET /files/{file_id}", {"file_id": self.upload(**expiry)}))
        self.client.ask(Call("GET /files"))
        days = {"anchor": "last_active_at", "days": 7}
        store = self.new_store(expires_after=days, metadata={"kind": "wood"})
        self.client.ask(Call(f"GET {STORE}", {"vector_store_id": store}))
        self.client.ask(Call(f"GET {STORES}"))
        broken = {**self.stored, "file_id": self.broken}
        self.client.ask(Call(f"POST {STORE_FILE}", broken, body={"attributes": ATTRIBUTES}))

    def upload(self, name: str = "oak.md", content: bytes = OAK, **fields: Any) -> str:
        form = {"file": (name, content), "purpose": "assistants", **fields}
        return self.client.ask(Call("POST /files", form=form))["id"]

    def new_store(self, **fields: Any) -> str:
        return self.client.ask(Call(f"POST {STORES}", body=fields))["id"]

    def attach(self, store: str, file: str, **fields: Any) -> Any:
        """Attach a file; the service answers when that is done."""
        return self.client.ask(Call(f"POST {FILES}", {"vector_store_id": store}, body={"file_id": file, **fields}))

    def new_batch(self, **fields: Any) -> str:
        return self.client.ask(Call(f"POST {BATCHES}", self.stored, body=fields))["id"]

    def settled(self, store: str) -> list[Any]:
        """Return the files of a store once none is in progress, in the order of their attachment."""
        while True:
            listed = self.client.ask(Call(f"GET {FILES}", {"vector_store_id": store}, {"order": "asc", "limit": 100}))
            if all(each["status"] != "in_progress" for each in listed["data"]):
                return listed["data"]
            time.sleep(0.05)

    def calls(self, operation: str) -> list[Call]:
        """Return valid requests of an operation, which have all of its properties together."""
        method, _, path = operation.partition(" ")
        if method == "DELETE":
            return [self._deletion(operation, path)]
        if method == "GET" and not path.endswith(("/files", "/vector_stores")):
            ids = {"file_id": self.oak, "batch_id": self.batch, **self.stored}
            return [Call(operation, {name: ids[name] for name in ids if f"{{{name}}}" in path})]
        if method == "GET":
            return self._lists(operation, path)
        return self._posts(operation)

    def _deletion(self, operation: str, path: str) -> Call:
        if path == "/files/{file_id}":
            return Call(operation, {"file_id": self.upload()})
        store = self.new_store()
        if path == STORE:
            return Call(operation, {"vector_store_id": store})
        self.attach(store, self.ash)
        return Call(operation, {"vector_store_id": store, "file_id": self.ash})

    def _lists(self, operation: str, path: str) -> list[Call]:
        ids: dict[str, str] = {} if path in ("/files", STORES) else dict(self.stored)
        if path.startswith(BATCH):
            ids["batch_id"] = self.batch
        listed = [each["id"] for each in self.client.ask(Call(operation, ids))["data"]]
        query = {"limit": 2, "order": "desc", "after": listed[0]}
        if path == "/files":
            return [Call(operation, ids, {**query, "purpose": "assistants"})]
        filtered = {} if path == STORES else {"filter": "completed"}
        return [Call(operation, ids, {**query, **filtered}), Call(operation, ids, {"before": listed[-1]})]

    def _posts(self, operation: str) -> list[Call]:
        expiry = {"anchor": "last_active_at", "days": 7}
        fields = {"name": "wood", "metadata": {"kind": "wood"}, "expires_after": expiry}
        auto, given = {"type": "auto"}, {"attributes": ATTRIBUTES}
        ids, body = self.stored, operation.removeprefix("POST ")
        several = {"vector_store_id": self.new_store()}
        bodies: dict[str, list[Any]] = {
            STORES: [
                {**fields, "description": "of wood", "file_ids": [self.oak], "chunking_strategy": each}
                for each in (STATIC, auto)
            ],
            STORE: [fields],
            STORE_FILE: [given],
            FILES: [{"file_id": self.oak, "chunking_strategy": each, **given} for each in (STATIC, auto)],
            BATCHES: [
                made
                for each in (STATIC, auto)
                for made in (
                    {"file_ids": [self.oak], "chunking_strategy": each, **given},
                    {"files": [{"file_id": self.oak, "chunking_strategy": each, **given}]},
                )
            ],
            f"{STORE}/search": [self._search(each) for each in _filters()],
        }
        if body == "/files":
            form = {"file": ("oak.md", OAK), "purpose": "user_data"}
            return [Call(operation, form={**form, "expires_after.anchor": "created_at", "expires_after.seconds": 7200})]
        if body == f"{BATCH}/cancel":
            return [Call(operation, {**ids, "batch_id": self.new_batch(file_ids=[self.ash])})]
        if body == STORE:
            return [Call(operation, several, body=each) for each in bodies[body]]
        path = {} if body == STORES else {**ids, "file_id": self.oak} if body == STORE_FILE else ids
        return [Call(operation, path, body=each) for each in bodies[body]]

    def _search(self, filters: Any) -> dict[str, Any]:
        ranking = {"ranker": "auto", "score_threshold": 0.01}
        query = [QUESTION, "legs"] if filters["type"] == "in" else QUESTION
        options = {"rewrite_query": False, "max_num_results": 5, "ranking_options": ranking}
        return {"query": query, "filters": filters, **options}


def _filters() -> list[Any]:
    return [EQUAL, {"type": "in", "key": "team", "value": ["blue"]}, {"type": "and", "filters": [EQUAL]}]
