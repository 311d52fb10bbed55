"""Two people: nothing of one in any answer about files and vector stores of the other, whatever ids they guess."""

import openai
import pytest

from tests.serving.stores.conftest import ASH, OAK, client_of

MISSING = "0" * 29


@pytest.fixture(scope="module")
def house(app):
    """Return clients of people, and the ids of what ada owns alone, and of what her organization owns."""
    people = {name: client_of(app, name, org_id="acme") for name in ("ada", "bob")}
    people["eve"] = client_of(app, "eve", org_id="other")
    people["hal"] = client_of(app, "ada", org_id="acme", namespaces=["hr"])
    people["acme"] = client_of(app, "acme", user_id=None, org_id="acme")
    people["anonymous"] = openai.OpenAI(base_url=f"{app.url}/v1", api_key="sk-other", max_retries=0)
    owned = {}
    for owner, content in (("ada", OAK), ("acme", ASH)):
        client = people[owner]
        file = client.files.create(file=("secret.md", content), purpose="assistants")
        store = client.vector_stores.create(name=f"of {owner}")
        # Nobody waits for the job: what exists is told apart from what does not without it.
        batch = client.vector_stores.file_batches.create(store.id, file_ids=[file.id])
        owned[owner] = (file.id, store.id, batch.id)
    yield people, owned
    for client in people.values():
        client.close()


SEES = {"ada": {"ada", "acme"}, "bob": {"acme"}, "eve": set(), "hal": set(), "anonymous": set(), "acme": {"acme"}}


@pytest.mark.parametrize("name", SEES)
def test_only_ones_own_is_listed(house, name):
    people, owned = house
    client = people[name]
    stores = {each.id for each in client.vector_stores.list(limit=100)}
    files = {each.id for each in client.files.list()}
    for owner, (file, store, _) in owned.items():
        assert (store in stores) == (owner in SEES[name])
        assert (file in files) == (owner in SEES[name])


def calls(client, file, store, batch):
    """Return calls that read, and calls that change."""
    stores, files, batches = client.vector_stores, client.vector_stores.files, client.vector_stores.file_batches
    read = [
        lambda: client.files.retrieve(file),
        lambda: client.files.content(file),
        lambda: stores.retrieve(store),
        lambda: stores.search(store, query="oak"),
        lambda: files.list(store),
        lambda: files.retrieve(file, vector_store_id=store),
        lambda: files.content(file, vector_store_id=store),
        lambda: batches.retrieve(batch, vector_store_id=store),
        lambda: batches.list_files(batch, vector_store_id=store),
    ]
    change = [
        lambda: client.files.delete(file),
        lambda: stores.update(store, name="mine"),
        lambda: stores.delete(store),
        lambda: files.create(store, file_id=file),
        lambda: files.update(file, vector_store_id=store, attributes={}),
        lambda: files.delete(file, vector_store_id=store),
        lambda: batches.create(store, file_ids=[file]),
        lambda: batches.cancel(batch, vector_store_id=store),
        lambda: stores.create(file_ids=[file]),
    ]
    return read, change


@pytest.mark.parametrize("name", [name for name, seen in SEES.items() if "ada" not in seen])
def test_ids_of_another_do_not_help(house, name):
    """Hidden and missing are the same answer; without the right to write, nothing is changed either."""
    people, owned = house
    hidden = calls(people[name], *owned["ada"])
    missing = calls(people[name], f"file-{MISSING}", f"vs_{MISSING}", f"vsfb_{MISSING}")
    for kind, (ours, others) in enumerate(zip(hidden, missing, strict=True)):
        refused = openai.PermissionDeniedError if kind and name == "anonymous" else openai.NotFoundError
        for one, other in zip(ours, others, strict=True):
            with pytest.raises(refused) as told:
                one()
            with pytest.raises(refused) as never:
                other()
            assert told.value.status_code == never.value.status_code
            assert told.value.code == never.value.code
            assert "secret" not in str(told.value)


def test_file_of_another_is_not_attached(house):
    people, owned = house
    bob = people["bob"]
    store = bob.vector_stores.create()
    for attach in (
        lambda: bob.vector_stores.files.create(store.id, file_id=owned["ada"][0]),
        lambda: bob.vector_stores.file_batches.create(store.id, file_ids=[owned["ada"][0]]),
    ):
        with pytest.raises(openai.NotFoundError):
            attach()
    assert list(bob.vector_stores.files.list(store.id)) == []


def test_public_documents_are_searched_by_everybody(house):
    people, _ = house
    for client in people.values():
        if client is people["hal"]:
            continue
        store = next(each for each in client.vector_stores.list() if each.metadata == {"namespace": "default"})
        found = client.vector_stores.search(store.id, query="How many days of holiday?", max_num_results=1)
        assert "thirty days" in found.data[0].content[0].text
