"""Vector stores under /v1, by OpenAI's clients: what is attached is found, and only that."""

import asyncio

import openai
import pytest

from tests.serving.stores.conftest import ASH, OAK, client_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("vector-stores")]
COST = "What does the oak table cost?"


def names(results):
    return [each.filename for each in results]


def test_batch_tells_what_was_indexed_and_what_failed(ada, wood):
    counts = wood.batch.file_counts
    assert (wood.batch.status, counts.completed, counts.failed, counts.total) == ("completed", 1, 1, 2)
    failed = ada.vector_stores.files.retrieve(wood.broken, vector_store_id=wood.id)
    assert (failed.status, failed.last_error.code) == ("failed", "invalid_file")
    assert "broken.docx" in failed.last_error.message
    store = ada.vector_stores.retrieve(wood.id)
    assert (store.status, store.file_counts.failed, store.metadata) == ("completed", 1, {"kind": "wood"})
    assert store.usage_bytes > len(OAK)
    listed = ada.vector_stores.file_batches.list_files(wood.batch.id, vector_store_id=wood.id, filter="failed")
    assert [each.id for each in listed] == [wood.broken]


def test_attached_file_is_found_with_its_attributes(ada, wood):
    (found,) = ada.vector_stores.search(wood.id, query=COST)
    assert (found.file_id, found.filename) == (wood.oak, "oak.md")
    assert found.attributes == {"team": "blue", "year": 2020.0, "draft": False}
    assert "640 euros" in found.content[0].text
    assert 0.3 < found.score <= 1
    ranked = ada.vector_stores.search(wood.id, query=[COST, "legs"], ranking_options={"score_threshold": found.score})
    assert [each.file_id for each in ranked] == [wood.oak]
    assert not ada.vector_stores.search(wood.id, query="quasar", ranking_options={"score_threshold": 0.7}).data


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"type": "eq", "key": "team", "value": "blue"}, True),
        ({"type": "ne", "key": "team", "value": "blue"}, False),
        ({"type": "gte", "key": "year", "value": 2020}, True),
        ({"type": "in", "key": "team", "value": ["red"]}, False),
        ({"type": "nin", "key": "team", "value": ["red"]}, True),
        ({"type": "eq", "key": "draft", "value": False}, True),
        # A key that is not shown is no attribute.
        ({"type": "eq", "key": "salary", "value": "high"}, False),
        ({"type": "ne", "key": "salary", "value": "high"}, True),
        (
            {
                "type": "and",
                "filters": [
                    {"type": "eq", "key": "team", "value": "blue"},
                    {"type": "or", "filters": [{"type": "lt", "key": "year", "value": 2000}]},
                ],
            },
            False,
        ),
    ],
)
def test_filters_are_applied(ada, wood, filters, found):
    assert bool(ada.vector_stores.search(wood.id, query=COST, filters=filters).data) == found


def nested(depth):
    return {"type": "eq", "key": "a", "value": 1} if not depth else {"type": "and", "filters": [nested(depth - 1)]}


@pytest.mark.parametrize(
    "filters",
    [
        {"type": "like", "key": "team", "value": "b"},
        {"type": "eq", "key": "team"},
        {"type": "eq", "key": 1, "value": "b"},
        {"type": "eq", "key": "team", "value": None},
        {"type": "in", "key": "team", "value": "blue"},
        {"type": "eq", "key": "team", "value": "b", "more": 1},
        {"type": "and", "filters": "x"},
        {"type": "and", "filters": [1]},
        nested(9),
        {"type": "or", "filters": [{"type": "eq", "key": "a", "value": 1}] * 101},
        {"type": "in", "key": "a", "value": list(range(1001))},
    ],
    ids=lambda filters: str(filters)[:50],
)
def test_unusable_filter_is_refused_and_never_ignored(ada, wood, filters):
    with pytest.raises(openai.BadRequestError) as refused:
        ada.vector_stores.search(wood.id, query=COST, filters=filters)
    assert refused.value.param.startswith("filters")


def test_rewriting_without_a_model_is_refused(ada, wood):
    with pytest.raises(openai.BadRequestError) as refused:
        ada.vector_stores.search(wood.id, query=COST, rewrite_query=True)
    assert refused.value.param == "rewrite_query"


def test_chunks_have_the_size_asked_for(ada):
    text = " ".join(f"Board {number} is planed on both sides." for number in range(400)).encode()
    file = ada.files.create(file=("boards.txt", text), purpose="assistants")
    store = ada.vector_stores.create(name="boards")
    counts = {}
    for size, strategy in (
        ("auto", {"type": "auto"}),
        ("small", {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 50}}),
    ):
        attached = ada.vector_stores.files.create_and_poll(
            file.id, vector_store_id=store.id, chunking_strategy=strategy, poll_interval_ms=100
        )
        assert attached.status == "completed"
        static = attached.chunking_strategy.static
        wanted = strategy.get("static") or {"max_chunk_size_tokens": 800, "chunk_overlap_tokens": 400}
        assert static.model_dump() == wanted
        found = ada.vector_stores.search(store.id, query="board planed", max_num_results=50)
        counts[size] = max(len(each.content[0].text) for each in found)
    assert counts["small"] < 700 < counts["auto"]
    assert ada.vector_stores.files.content(file.id, vector_store_id=store.id).data[0].text.encode() == text


def test_attributes_are_replaced(ada):
    store, file = ada.vector_stores.create(), ada.files.create(file=("ash.md", ASH), purpose="assistants")
    red, blue = ({"type": "eq", "key": "team", "value": value} for value in ("red", "blue"))
    ada.vector_stores.files.create(store.id, file_id=file.id, attributes={"team": "red"})
    assert names(ada.vector_stores.search(store.id, query="bench", filters=red)) == ["ash.md"]
    changed = ada.vector_stores.files.update(file.id, vector_store_id=store.id, attributes={"team": "blue"})
    assert (changed.status, changed.attributes) == ("completed", {"team": "blue"})
    assert not ada.vector_stores.search(store.id, query="bench", filters=red).data
    assert names(ada.vector_stores.search(store.id, query="bench", filters=blue)) == ["ash.md"]


def test_file_is_found_only_where_it_is_attached(ada):
    file = ada.files.create(file=("ash.md", ASH), purpose="assistants")
    one, other = ada.vector_stores.create(), ada.vector_stores.create()
    for store in (one, other):
        ada.vector_stores.files.create(store.id, file_id=file.id)
        assert names(ada.vector_stores.search(store.id, query="bench")) == ["ash.md"]
    assert ada.vector_stores.files.delete(file.id, vector_store_id=one.id).deleted
    assert not ada.vector_stores.search(one.id, query="bench").data
    with pytest.raises(openai.NotFoundError):
        ada.vector_stores.files.retrieve(file.id, vector_store_id=one.id)
    assert names(ada.vector_stores.search(other.id, query="bench")) == ["ash.md"]
    # A deleted store leaves its files; a deleted file is in no store.
    third = ada.vector_stores.create()
    ada.vector_stores.files.create(third.id, file_id=file.id)
    assert ada.vector_stores.delete(other.id).deleted
    with pytest.raises(openai.NotFoundError):
        ada.vector_stores.retrieve(other.id)
    assert ada.files.retrieve(file.id).id == file.id
    assert ada.files.delete(file.id).deleted
    assert not ada.vector_stores.search(third.id, query="bench").data
    assert ada.vector_stores.retrieve(third.id).file_counts.total == 0


def test_files_of_a_store_are_listed_in_pages(ada):
    files = [ada.files.create(file=(f"{n}.md", OAK + b"%d" % n), purpose="assistants").id for n in range(5)]
    store = ada.vector_stores.create(file_ids=files)

    def listed(**options):
        return [each.id for each in ada.vector_stores.files.list(store.id, **options).data]

    assert listed() == files[::-1]
    assert [each.id for each in ada.vector_stores.files.list(store.id, limit=2, order="asc")] == files
    assert listed(order="asc", after=files[2]) == files[3:]
    assert listed(order="asc", before=files[3], limit=2) == files[1:3]
    assert listed(filter="cancelled") == []
    for each in ada.vector_stores.files.list(store.id, limit=2):
        ada.vector_stores.files.delete(each.id, vector_store_id=store.id)
    assert listed() == []


def test_results_have_pages(app, ada):
    text = "\n\n".join(f"# Board {n}\n\nBoard number {n} is of oak." for n in range(60)).encode()
    file = ada.files.create(file=("boards.md", text), purpose="assistants")
    store = ada.vector_stores.create()
    small = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 0}}
    ada.vector_stores.files.create(store.id, file_id=file.id, chunking_strategy=small)
    seen, page, pages = [], None, 0
    while True:
        extra = {} if page is None else {"page": page}
        found = ada.vector_stores.search(store.id, query="oak board", max_num_results=4, extra_query=extra)
        seen += [each.content[0].text for each in found.data]
        pages, page = pages + 1, found.model_extra["next_page"]
        assert found.model_extra["has_more"] == (page is not None)
        if page is None:
            break
    assert pages > 1
    assert len(set(seen)) == len(seen)
    whole = ada.vector_stores.search(store.id, query="oak board", max_num_results=50)
    assert seen == [each.content[0].text for each in whole.data]
    first = ada.vector_stores.search(store.id, query="oak board", max_num_results=4)
    with pytest.raises(openai.BadRequestError):
        ada.vector_stores.search(
            store.id, query="other", max_num_results=4, extra_query={"page": first.model_extra["next_page"]}
        )


def test_store_is_changed(ada):
    store = ada.vector_stores.create(
        name="a", metadata={"k": "v"}, expires_after={"anchor": "last_active_at", "days": 7}, description="wood"
    )
    assert store.expires_at == store.last_active_at + 7 * 24 * 3600
    changed = ada.vector_stores.update(store.id, name="b")
    assert (changed.name, changed.metadata, changed.expires_after.days) == ("b", {"k": "v"}, 7)
    changed = ada.vector_stores.update(store.id, metadata=None, expires_after=None)
    assert (changed.name, changed.metadata, changed.expires_after, changed.expires_at) == ("b", {}, None, None)


def test_stores_are_listed_in_pages_with_the_namespaces(app):
    with client_of(app, "cyd") as client:
        stores = [client.vector_stores.create(name=str(n)).id for n in range(4)]
        listed = [each.id for each in client.vector_stores.list(limit=2)]
        namespace = next(each for each in client.vector_stores.list() if each.metadata == {"namespace": "default"})
        assert listed == [*stores[::-1], namespace.id]
        assert [each.id for each in client.vector_stores.list(order="asc", after=stores[0], limit=2).data] == stores[
            1:3
        ]
        assert [each.id for each in client.vector_stores.list(order="asc", before=stores[3], limit=2).data] == stores[
            1:3
        ]
        assert [each.id for each in client.vector_stores.list(after=namespace.id).data] == []


def test_namespace_is_a_store_that_is_only_read(app):
    with client_of(app, "dan") as client:
        (store,) = [each for each in client.vector_stores.list() if each.metadata == {"namespace": "default"}]
        assert (store.name, store.status) == ("default", "completed")
        assert store.file_counts.completed == store.file_counts.total == 1
        assert store.usage_bytes > 0
        (file,) = client.vector_stores.files.list(store.id)
        (found,) = client.vector_stores.search(store.id, query="How many days of holiday?")
        assert found.file_id == file.id
        assert client.vector_stores.files.retrieve(file.id, vector_store_id=store.id) == file
        assert "thirty days" in client.vector_stores.files.content(file.id, vector_store_id=store.id).data[0].text
        assert client.files.retrieve(file.id).filename == "leave.md"
        assert "thirty days" in client.files.content(file.id).text
        own = client.files.create(file=("oak.md", OAK), purpose="assistants")
        for change in (
            lambda: client.vector_stores.files.create(store.id, file_id=own.id),
            lambda: client.vector_stores.files.delete(file.id, vector_store_id=store.id),
            lambda: client.vector_stores.update(store.id, name="x"),
            lambda: client.vector_stores.delete(store.id),
            lambda: client.files.delete(file.id),
        ):
            with pytest.raises(openai.PermissionDeniedError):
                change()


def test_cancelled_batch_leaves_nothing(app, ada):
    files = [ada.files.create(file=(f"{n}.md", OAK + b"%d" % n), purpose="assistants").id for n in range(3)]
    store = ada.vector_stores.create()
    batch = ada.vector_stores.file_batches.create(store.id, file_ids=files)
    assert (batch.status, batch.file_counts.in_progress) == ("in_progress", 3)
    cancelled = ada.vector_stores.file_batches.cancel(batch.id, vector_store_id=store.id)
    assert (cancelled.status, cancelled.file_counts.cancelled) == ("cancelled", 3)
    waiting = app.resources.jobs.list(kind="remove", limit=1)
    app.resources.jobs.wait(waiting[0].id, 60)
    assert not ada.vector_stores.search(store.id, query=COST).data
    assert ada.vector_stores.retrieve(store.id).file_counts.cancelled == 3


def test_async_client_uploads_and_polls(app, ada):
    async def converse():
        async with openai.AsyncOpenAI(base_url=f"{app.url}/v1", api_key=ada.api_key, max_retries=0) as client:
            store = await client.vector_stores.create(name="async")
            batch = await client.vector_stores.file_batches.upload_and_poll(
                store.id, files=[("oak.md", OAK), ("ash.md", ASH)], poll_interval_ms=100
            )
            assert batch.file_counts.completed == 2
            file = await client.vector_stores.files.upload_and_poll(
                vector_store_id=store.id, file=("elm.md", b"An elm stool."), poll_interval_ms=100
            )
            assert file.status == "completed"
            listed = [each.id async for each in client.vector_stores.files.list(store.id, limit=1)]
            found = await client.vector_stores.search(store.id, query="stool", max_num_results=1)
            await client.vector_stores.delete(store.id)
            return len(listed), names(found.data)

    assert asyncio.run(converse()) == (3, ["elm.md"])


def test_batch_with_files_of_their_own_attributes(ada):
    oak, ash = (
        ada.files.create(file=(f"{n}.md", text), purpose="assistants").id for n, text in (("o", OAK), ("a", ASH))
    )
    store = ada.vector_stores.create()
    batch = ada.vector_stores.file_batches.create(
        store.id, files=[{"file_id": oak, "attributes": {"kind": "table"}}, {"file_id": ash}]
    )
    ada.vector_stores.file_batches.poll(batch.id, vector_store_id=store.id, poll_interval_ms=100)
    listed = ada.vector_stores.file_batches.list_files(batch.id, vector_store_id=store.id, order="asc")
    assert [each.attributes for each in listed] == [{"kind": "table"}, {}]
