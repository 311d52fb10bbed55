"""Effects of the properties of requests: a property that is taken and changes nothing does not conform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.conformance_client import Call
from benchmarks.conformance_scene import (
    ASH,
    ATTRIBUTES,
    BATCH,
    BATCHES,
    FILES,
    QUESTION,
    REWRITTEN,
    STATIC,
    STORE,
    STORES,
    Scene,
)

Effect = Callable[[Scene, Any], bool]
"""scene, and the value that is tried -> True if it has the effect that the schema states"""
_AUTO = {"type": "static", "static": {"max_chunk_size_tokens": 800, "chunk_overlap_tokens": 400}}
_MATCHING: dict[str, tuple[Any, Any]] = {
    "eq": (2020, 2021),
    "ne": (2021, 2020),
    "gt": (2019, 2020),
    "gte": (2020, 2021),
    "lt": (2021, 2020),
    "lte": (2020, 2019),
    "in": ([2019, 2020], [2019]),
    "nin": ([2019], [2020]),
}
"""operator -> a year with which the attributes of the file match, and one with which they do not"""


def _file(scene: Scene, _: Any) -> bool:
    file = scene.upload("plain.txt", ASH)
    return scene.client.send(Call("GET /files/{file_id}/content", {"file_id": file})).content == ASH


def _file_expiry(scene: Scene, _: Any) -> bool:
    expiry = {"expires_after.anchor": "created_at", "expires_after.seconds": 7200}
    form = {"file": ("a.md", ASH), "purpose": "assistants", **expiry}
    made = scene.client.ask(Call("POST /files", form=form))
    return made.get("expires_at") == made["created_at"] + 7200


def _purposes(scene: Scene, _: Any) -> bool:
    other = scene.upload(purpose="user_data")
    listed = scene.client.ask(Call("GET /files", query={"purpose": "assistants"}))["data"]
    return bool(listed) and other not in [each["id"] for each in listed]


def _description(scene: Scene, _: Any) -> bool:
    store = scene.new_store(description="of wood")
    return scene.client.ask(Call(f"GET {STORE}", {"vector_store_id": store})).get("description") == "of wood"


def _store_files(scene: Scene, _: Any) -> bool:
    store = scene.new_store(file_ids=[scene.oak, scene.ash])
    return {each["id"] for each in scene.settled(store)} == {scene.oak, scene.ash}


def _wanted(value: Any) -> tuple[Any, Any]:
    return ({"type": "auto"}, _AUTO) if value == "auto" else (STATIC, STATIC)


def _store_chunking(scene: Scene, value: Any) -> bool:
    asked, wanted = _wanted(value)
    (file,) = scene.settled(scene.new_store(file_ids=[scene.oak], chunking_strategy=asked))
    return file["chunking_strategy"] == wanted


def _chunking(scene: Scene, value: Any) -> bool:
    asked, wanted = _wanted(value)
    return scene.attach(scene.new_store(), scene.oak, chunking_strategy=asked)["chunking_strategy"] == wanted


def _file_id(scene: Scene, _: Any) -> bool:
    return scene.attach(scene.new_store(), scene.oak)["id"] == scene.oak


def _batch(scene: Scene, fields: dict[str, Any], wanted: dict[str, Any]) -> bool:
    store = scene.new_store()
    batch = scene.client.ask(Call(f"POST {BATCHES}", {"vector_store_id": store}, body=fields))["id"]
    scene.settled(store)
    listed = scene.client.ask(Call(f"GET {BATCH}/files", {"vector_store_id": store, "batch_id": batch}))["data"]
    return [{name: each[name] for name in wanted} for each in listed] == [wanted]


def _batch_files(*, of_each: bool) -> dict[str, Effect]:
    """Return the effects of a batch with fields for all of its files, or for each."""

    def made(name: str, value: Any, wanted: dict[str, Any]) -> Effect:
        def effect(scene: Scene, tried: Any) -> bool:
            asked, expected = ({}, {"id": scene.oak}) if not name else ({name: value(tried)}, wanted(tried))
            several = {"files": [{"file_id": scene.oak, **asked}]} if of_each else {"file_ids": [scene.oak], **asked}
            return _batch(scene, several, {"id": scene.oak, **expected})

        return effect

    prefix = "files[]." if of_each else ""
    chunking = made("chunking_strategy", lambda v: _wanted(v)[0], lambda v: {"chunking_strategy": _wanted(v)[1]})
    return {
        "files" if of_each else "file_ids": made("", None, {}),
        f"{prefix}attributes": made("attributes", lambda _: ATTRIBUTES, lambda _: {"attributes": ATTRIBUTES}),
        f"{prefix}chunking_strategy": chunking,
    }


def _found(scene: Scene, **fields: Any) -> Any:
    return scene.client.ask(Call(f"POST {STORE}/search", scene.stored, body={"query": QUESTION, **fields}))


def _query(scene: Scene, _: Any) -> bool:
    both = _found(scene, query=["oak table", "ash bench"])
    first = _found(scene)["data"][0]["file_id"]
    return first == scene.oak and both["search_query"] == ["oak table", "ash bench"] and len(both["data"]) > 1


def _rewriting(scene: Scene, _: Any) -> bool:
    return _found(scene, rewrite_query=True)["search_query"] == [REWRITTEN]


def _fewer(scene: Scene, _: Any) -> bool:
    return len(_found(scene, max_num_results=1)["data"]) == 1 < len(_found(scene)["data"])


def _filters(scene: Scene, value: Any) -> bool:
    def finds(filters: Any) -> bool:
        return scene.oak in [each["file_id"] for each in _found(scene, filters=filters)["data"]]

    yes, no = ({"type": "eq", "key": "year", "value": year} for year in (2020, 2021))
    if value in _MATCHING:
        yes, no = ({"type": value, "key": "year", "value": each} for each in _MATCHING[value])
    elif value == "and":
        yes, no = {"type": "and", "filters": [yes, yes]}, {"type": "and", "filters": [yes, no]}
    elif value == "or":
        yes, no = {"type": "or", "filters": [no, yes]}, {"type": "or", "filters": [no, no]}
    return finds(yes) and not finds(no)


def _threshold(scene: Scene, _: Any) -> bool:
    scores = [each["score"] for each in _found(scene)["data"]]
    left = _found(scene, ranking_options={"score_threshold": scores[0]})["data"]
    return len(scores) > len(left) >= 1 and all(each["score"] >= scores[0] for each in left)


def _ranker(scene: Scene, value: Any) -> bool:
    return bool(_found(scene, ranking_options={"ranker": value or "auto"})["data"])


def _list_effects(operation: str) -> dict[str, Effect]:
    """Return the effects of the parameters of a list."""

    def ids(scene: Scene, **query: Any) -> list[str]:
        (call, *_) = scene.calls(operation)
        return [each["id"] for each in scene.client.ask(Call(operation, call.path, query))["data"]]

    def order(scene: Scene, _: Any) -> bool:
        found = ids(scene, order="desc", limit=100)
        return len(found) > 1 and ids(scene, order="asc", limit=100) == found[::-1]

    def filter_(scene: Scene, value: Any) -> bool:
        status = value or "completed"
        (call, *_) = scene.calls(operation)
        listed = scene.client.ask(Call(operation, call.path, {"filter": status}))["data"]
        return all(each["status"] == status for each in listed) and len(listed) < len(ids(scene))

    return {
        "limit": lambda scene, _: len(ids(scene, limit=1)) == 1 < len(ids(scene)),
        "order": order,
        "after": lambda scene, _: ids(scene, after=ids(scene)[0])[:1] == ids(scene)[1:2],
        "before": lambda scene, _: ids(scene, before=ids(scene)[1]) == ids(scene)[:1],
        "filter": filter_,
        "purpose": _purposes,
    }


EFFECTS: dict[str, dict[str, Effect]] = {
    "POST /files": {"file": _file, "expires_after": _file_expiry},
    f"POST {STORES}": {"description": _description, "file_ids": _store_files, "chunking_strategy": _store_chunking},
    f"POST {FILES}": {"file_id": _file_id, "chunking_strategy": _chunking},
    f"POST {BATCHES}": {**_batch_files(of_each=False), **_batch_files(of_each=True)},
    f"POST {STORE}/search": {
        "query": _query,
        "rewrite_query": _rewriting,
        "max_num_results": _fewer,
        "filters": _filters,
        "ranking_options.ranker": _ranker,
        "ranking_options": _threshold,
    },
    **{
        operation: _list_effects(operation)
        for operation in ("GET /files", f"GET {STORES}", f"GET {FILES}", f"GET {BATCH}/files")
    },
}
"""operation -> property of its request -> effect; properties below one have its effect, others show in the answer"""
