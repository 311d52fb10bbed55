"""`file_search` over two stores, and twice in one answer: each excerpt once in a search, each citation to its file."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import working_app
from tests.servers.model_service import ModelService, call, call_stream, said, text_stream
from tests.serving.audited import events_from_now
from tests.serving.responses.asking_client import RESULTS, client_of, create
from tests.serving.stores.conftest import ASH, OAK, RIGHTS
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("two-searches")]
ELM = b"# Elm\n\nThe elm stool is painted green and costs 95 euros.\n"
COST, PAINT = "What does the oak table cost?", "Which stool is painted green?"
TWICE = [call("file_search", "c1", queries=[COST]), call("file_search", "c2", queries=[PAINT])]


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """Run an application with two stores of ada's that share a file, behind a scripted model service."""
    workshop = Workshop(tmp_path_factory.mktemp("two"))
    workshop.write("leave.md", "# Leave\n\nEverybody has thirty days of holiday.\n")
    workshop.refresh()
    with ModelService() as service:
        tables = {
            "corpus": {"root": str(workshop.root / "corpus")},
            "extraction": {"workers": 1},
            "upstream": {"base_url": service.base_url, "api_key": "sk-own"},
        }
        with working_app(parse_settings(tables, "test")) as app:
            with app.resources.follower.reader(wait=60):
                pass
            client = client_of(app, app.resources.tokens.create("ada", user_id="ada", rights=RIGHTS)[1])
            files = {
                name: client.files.create(file=(f"{name}.md", text), purpose="assistants").id
                for name, text in (("oak", OAK), ("ash", ASH), ("elm", ELM))
            }
            stores = []
            for names in (("oak", "ash"), ("oak", "elm")):
                store = client.vector_stores.create(name=" and ".join(names))
                held = [files[name] for name in names]
                client.vector_stores.file_batches.create_and_poll(store.id, file_ids=held, poll_interval_ms=50)
                stores.append(store.id)
            yield SimpleNamespace(app=app, client=client, service=service, files=files, stores=stores)


def tool_of(house, *stores):
    return {"type": "file_search", "vector_store_ids": list(stores or house.stores)}


def answers(stream, *calls, text):
    if stream:
        return call_stream(*calls), text_stream(text)
    return said(None, calls), said(text)


def marks_in(asked):
    """Return the results that the model read, call by call."""
    tools = [each for each in asked.body["messages"] if each["role"] == "tool"]
    return [json.loads(each["content"])["results"] for each in tools]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("queries", [[COST], [COST, "oak legs euros"], [COST, PAINT, "Who seats three?"]], ids=len)
def test_a_file_of_two_stores_is_found_once(house, queries, stream):
    house.service.requests.clear()
    house.service.expect(*answers(stream, call("file_search", queries=queries), text="It costs 640 euros [cite:1]."))
    response = create(house.client, stream, tools=[tool_of(house)], include=RESULTS)
    searched, message = response.output
    found = [(each.file_id, each.text) for each in searched.results]
    assert len(found) == len(set(found))
    assert len({text for _, text in found}) == len(found)
    assert {file for file, _ in found} == set(house.files.values())
    scores = [each.score for each in searched.results]
    assert scores == sorted(scores, reverse=True)
    (shown,) = marks_in(house.service.requests[1])
    assert [each["mark"] for each in shown] == [f"[cite:{number}]" for number in range(1, len(found) + 1)]
    assert [each["file"] for each in shown] == [each.filename for each in searched.results]
    (annotation,) = message.content[0].annotations
    assert (annotation.file_id, annotation.filename) == (searched.results[0].file_id, searched.results[0].filename)


def test_each_store_alone_finds_its_own_files(house):
    for store, names in zip(house.stores, (("oak", "ash"), ("oak", "elm")), strict=True):
        house.service.expect(*answers(False, call("file_search", queries=[COST, PAINT]), text="x"))
        response = create(house.client, tools=[tool_of(house, store)], include=RESULTS)
        assert {each.file_id for each in response.output[0].results} == {house.files[name] for name in names}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_two_searches_of_one_answer_have_their_own_results_and_numbers_that_go_on(house, stream):
    house.service.requests.clear()
    events = events_from_now(house.app.resources.state)
    most = {"max_num_results": 2}
    # The second number, and the first of the second search, in both spellings; a number that nothing has.
    text = "It costs 640 euros [cite:1]. The stool is green [cite:3][cite:1,3]. Else [cite:9]."
    house.service.expect(*answers(stream, *TWICE, text=text))
    response = create(house.client, stream, tools=[{**tool_of(house), **most}], include=RESULTS)
    first, second, message = response.output
    assert [each.queries for each in (first, second)] == [[COST], [PAINT]]
    assert first.id != second.id
    assert [len(each.results) for each in (first, second)] == [2, 2]
    assert (first.results[0].filename, second.results[0].filename) == ("oak.md", "elm.md")
    shown = marks_in(house.service.requests[1])
    assert [[each["mark"] for each in results] for results in shown] == [
        ["[cite:1]", "[cite:2]"],
        ["[cite:3]", "[cite:4]"],
    ]
    assert [[each["file"] for each in results] for results in shown] == [
        [each.filename for each in search.results] for search in (first, second)
    ]
    (part,) = message.content
    assert part.text == "It costs 640 euros. The stool is green. Else [cite:9]."
    told = [(each.filename, each.file_id, part.text[: each.index]) for each in part.annotations]
    oak, elm = house.files["oak"], house.files["elm"]
    assert told == [
        ("oak.md", oak, "It costs 640 euros"),
        ("elm.md", elm, "It costs 640 euros. The stool is green"),
        ("oak.md", oak, "It costs 640 euros. The stool is green"),
    ]
    (event,) = events()
    assert (event["event"], event["queries"], event["chunks"]) == ("knowledge.query", 2, 4)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_same_search_twice_cites_one_file_once_at_a_place(house, stream):
    again = [call("file_search", each, queries=[COST]) for each in ("c1", "c2")]
    house.service.expect(*answers(stream, *again, text="It costs 640 euros [cite:1][cite:4]."))
    response = create(house.client, stream, tools=[tool_of(house)], include=RESULTS)
    first, second, message = response.output
    assert [each.to_dict() for each in first.results] == [each.to_dict() for each in second.results]
    assert len(first.results) == 3
    (annotation,) = message.content[0].annotations
    assert annotation.filename == "oak.md"


def test_a_namespace_and_a_store_within_it_show_each_excerpt_once(house):
    namespace = next(each.id for each in house.client.vector_stores.list() if each.metadata)
    house.service.expect(*answers(False, call("file_search", queries=[COST, PAINT, "holiday"]), text="x"))
    response = create(house.client, tools=[tool_of(house, namespace, house.stores[0])], include=RESULTS)
    texts = [each.text for each in response.output[0].results]
    assert len(texts) == len(set(texts)) >= 4
