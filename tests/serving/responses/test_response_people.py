"""Responses of several people: what each finds and stores, and whose tokens go where."""

from __future__ import annotations

import json

import openai
import pytest

from tests.servers.model_service import (
    ModelService,
    call,
    said,
    text_stream,
)
from tests.serving.chat.conftest import proxy
from tests.serving.responses.asking_client import RESULTS, SEARCHES, STORE, TOOL, client_of, create, token_of
from tests.serving.responses.checks import check_response


def test_each_person_finds_and_is_told_their_own(running, service):
    app, _ = running
    asks = call("file_search", queries=["vault word of ada", "vault word of eve"])
    for name, other in (("ada", "eve"), ("eve", "ada")):
        service.expect(said(None, [asks]), said("Here [cite:1]."))
        response = create(client_of(app, token_of(app, name)), tools=[TOOL], include=RESULTS)
        told = response.to_json() + service.requests[-1].content.decode()
        assert f"{name}word" in told
        assert f"{other}word" not in told
        assert f"{other}.md" not in told


def test_a_store_that_is_not_the_callers_is_one_that_does_not_exist(running, service):
    app, _ = running
    elsewhere = client_of(app, token_of(app, "bob", namespaces=("other",)))
    errors = []
    for store_id in (STORE, "vs_ns_" + "0" * 24, "vs_" + "0" * 24):
        with pytest.raises(openai.NotFoundError) as refused:
            create(elsewhere, tools=[{**TOOL, "vector_store_ids": [store_id]}])
        errors.append({**refused.value.body, "message": refused.value.body["message"].replace(store_id, "X")})
    assert errors[0] == errors[1] == errors[2]
    assert service.requests == []


def test_stored_responses_are_their_owners(running, service):
    app, _ = running
    ada, eve = (client_of(app, token_of(app, name)) for name in ("ada", "eve"))
    service.expect(said("Hello."))
    first = create(ada, input="Hi")
    assert check_response(json.loads(ada.responses.with_raw_response.retrieve(first.id).content)) == first
    (item,) = ada.responses.input_items.list(first.id).data
    assert (item.role, item.content[0].text) == ("user", "Hi")
    for ask in (eve.responses.retrieve, eve.responses.delete, eve.responses.input_items.list, eve.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            ask(first.id)
    with pytest.raises(openai.BadRequestError) as refused:
        create(eve, previous_response_id=first.id)
    assert refused.value.code == "previous_response_not_found"
    with pytest.raises(openai.BadRequestError):
        ada.responses.cancel(first.id)
    ada.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        ada.responses.retrieve(first.id)
    assert len(service.requests) == 1


def test_a_conversation_goes_on_over_stored_responses(client, service):
    service.expect(said(None, [SEARCHES]), said("It costs 640 euros [cite:1]."))
    first = create(client, tools=[TOOL], instructions="Be brief.")
    service.expect(text_stream("You are welcome."))
    second = create(client, stream=True, input="Thanks!", previous_response_id=first.id)
    service.expect(said("Bye."))
    third = create(client, input=[{"role": "user", "content": "Bye!"}], previous_response_id=second.id)
    assert third.previous_response_id == second.id
    # Instructions and results of searches are those of their own turn.
    assert [(each["role"], each["content"]) for each in service.requests[-1].body["messages"]] == [
        ("user", "How much is the oak table?"),
        ("assistant", "It costs 640 euros."),
        ("user", "Thanks!"),
        ("assistant", "You are welcome."),
        ("user", "Bye!"),
    ]


def test_what_is_not_stored_is_gone(client, service):
    service.expect(said("Hello."))
    response = create(client, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


def test_of_one_token_as_many_responses_are_stored_as_the_settings_say(shelf):
    answers = [said(f"Hello {number}.") for number in range(3)]
    with ModelService(*answers) as service, proxy(shelf, service, upstream={"max_responses": 2}) as app:
        client = client_of(app, token_of(app, "ada"))
        first, *others = [create(client, input="Hi").id for _ in answers]
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(first)
        assert [client.responses.retrieve(each).id for each in others] == others


def test_an_anonymous_callers_response_is_not_stored(running, service):
    """It could not be told from that of another one."""
    app, _ = running
    anonymous = client_of(app, "sk-of-somebody")
    service.expect(said(None, [SEARCHES]), said("Hello."))
    response = create(anonymous, tools=[TOOL], include=RESULTS)
    assert service.requests[0].key == "sk-of-somebody"
    assert "word" not in response.to_json()
    with pytest.raises(openai.NotFoundError):
        anonymous.responses.retrieve(response.id)
    with pytest.raises(openai.BadRequestError) as refused:
        create(anonymous, store=True)
    assert refused.value.body["param"] == "store"


def test_no_token_of_ours_reaches_the_model_service(running, service):
    app, _ = running
    token = token_of(app, "ada")
    service.expect(said(None, [SEARCHES]), said("Hello."))
    create(client_of(app, "sk-mine", default_headers={"X-Parquetry-Token": token}), tools=[TOOL])
    assert len(service.requests) == 2
    assert all(b"pqt_" not in each.everything and each.key == "sk-mine" for each in service.requests)
    with pytest.raises(openai.BadRequestError) as refused:
        create(client_of(app, token), input=f"My token is {token}.")
    assert refused.value.code == "token_would_leave"


def test_a_token_without_the_right_to_search_is_refused(running, service):
    app, _ = running
    with pytest.raises(openai.PermissionDeniedError):
        create(client_of(app, token_of(app, "ada", "write")))
    assert service.requests == []
