"""An application with files and vector stores, its jobs carried out in this process, and OpenAI's client of it."""

from types import SimpleNamespace

import openai
import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import working_app
from tests.workshop import Workshop

RIGHTS = ["search", "read", "write"]
OAK = b"# Oak\n\nThe oak table has four legs and costs 640 euros.\n"
ASH = b"# Ash\n\nThe ash bench seats three and costs 210 euros.\n"
BROKEN = b"PK\x03\x04 this is no document at all"


def client_of(app, name, **options):
    """Return OpenAI's client with a new token."""
    given = {"user_id": name, "rights": RIGHTS, **options}
    _, plain = app.resources.tokens.create(name, **given)
    return openai.OpenAI(base_url=f"{app.url}/v1", api_key=plain, max_retries=0, timeout=120)


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("stores"))
    workshop.write("leave.md", "# Leave\n\nEverybody has thirty days of holiday.\n")
    workshop.refresh()
    tables = {
        "corpus": {"root": str(workshop.root / "corpus")},
        "extraction": {"workers": 1},
        "serve": {"max_file_bytes": 200_000},
        "metadata_denylists": {"knowledge": ["salary"]},
    }
    with working_app(parse_settings(tables, "test")) as app:
        # A reader that is held would keep its index from being updated.
        with app.resources.follower.reader(wait=60):
            pass
        yield app


@pytest.fixture(scope="module")
def ada(app):
    with client_of(app, "ada") as client:
        yield client


@pytest.fixture(scope="module")
def wood(ada):
    """Return a store with a file that is found and one that failed, and their ids."""
    oak = ada.files.create(file=("oak.md", OAK), purpose="assistants")
    broken = ada.files.create(file=("broken.docx", BROKEN), purpose="user_data")
    store = ada.vector_stores.create(name="wood", metadata={"kind": "wood"})
    attributes = {"team": "blue", "year": 2020, "draft": False, "salary": "high"}
    batch = ada.vector_stores.file_batches.create_and_poll(
        store.id, file_ids=[oak.id, broken.id], attributes=attributes, poll_interval_ms=100
    )
    return SimpleNamespace(id=store.id, oak=oak.id, broken=broken.id, batch=batch)
