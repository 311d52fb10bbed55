"""Models of the Hugging Face Hub on the command line: refresh, search and second looks, online and offline."""

import pytest

from tests.embed.tiny_onnx import DIMENSION, build_folder
from tests.rerank import tiny_cross_encoder
from tests.servers.hub_server import HubServer, Repository

pytestmark = pytest.mark.slow

MODEL = "acme/tiny"
TOKEN = "hf_" + "opens3the4private5models6of7acme8"
DESCRIBED = {"config.json": {"hidden_size": DIMENSION, "model_type": "bert"}}
TEXTS = {"cat.md": "red cat sleeps", "dog.md": "green dog runs", "bird.md": "blue bird"}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def hub(tmp_path):
    repository = Repository()
    repository.publish(build_folder(tmp_path / "model", place="onnx/model.onnx", files=DESCRIBED))
    with HubServer({MODEL: repository}) as server:
        yield server


@pytest.fixture
def pets(desk, hub):
    """Empty the corpus, and refresh nothing yet."""
    for path in ("leave.md", "oak.txt", "sub/leave.md", "sub/it's [odd].txt", "empty.txt", "broken.docx"):
        (desk.folder / "docs" / path).unlink()
    for path, text in TEXTS.items():
        desk.write(path, text)
    configure(desk, hub)
    return desk


def configure(desk, hub, embedder=f"onnx:{MODEL}", rerank=""):
    (desk.folder / "parquetry.toml").write_text(
        "\n".join(
            [
                f'[corpus]\nroot = "pets"\nembedder = "{embedder}"',
                f'[hub]\nurl = "{hub.url}"\ncache = "cached"',
                '[extraction]\nworkers = 1\n[[source]]\nname = "docs"\nuri = "docs"',
                f'[search]\nrerank = "{rerank}"' if rerank else "",
            ]
        )
    )


def refreshed(desk):
    """Return the numbers of chunks written and embedded."""
    told = desk("refresh", "--direct", "--json")
    assert told.code == 0, told.stderr
    return told.json["chunks"]["written"], told.json["chunks"]["embedded"]


def best(desk, query):
    told = desk("search", query, "--mode", "vector", "-k", 1, "--json")
    assert (told.code, told.stderr) == (0, "")
    return told.json["results"][0]["filename"]


def embedders(desk):
    return [row[0] for row in desk("sql", "SELECT DISTINCT embedder FROM chunks", "--json").json["rows"]]


def test_corpus_by_a_model_of_the_hub_is_searched_and_stays_as_the_hub_moves(pets, hub, tmp_path):
    """The id of the embedder is that of the files: a folder with the same ones continues the corpus."""
    assert refreshed(pets) == (3, 3)
    assert [best(pets, query) for query in ("red cat", "dog runs", "blue bird")] == ["cat.md", "dog.md", "bird.md"]
    (first,) = embedders(pets)
    asked, old = len(hub.asked), hub.models[MODEL].names["main"]
    new = hub.models[MODEL].publish(build_folder(tmp_path / "model", seed=1, place="onnx/model.onnx", files=DESCRIBED))
    assert refreshed(pets) == (0, 0)
    assert len(hub.asked) == asked
    configure(pets, hub, f"onnx:{MODEL}@{new}")
    assert refreshed(pets) == (3, 3)
    assert embedders(pets) != [first]
    configure(pets, hub, f"onnx:cached/acme--tiny/{old}")
    assert refreshed(pets)[0] == 3
    assert embedders(pets) == [first]
    assert best(pets, "red cat") == "cat.md"


def test_offline_without_the_model_each_command_says_what_to_do(pets, hub, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for command in (("refresh", "--direct"), ("plan",)):
        told = pets(*command)
        assert told.code == 2
        assert told.complaint.endswith("or name a folder, onnx:./folder")
        assert f"the model onnx:{MODEL} is not in cached, and the hub is not asked (HF_HUB_OFFLINE)" in told.complaint
    assert hub.asked == []


def test_offline_with_the_model_everything_works(pets, hub, monkeypatch):
    assert refreshed(pets) == (3, 3)
    asked = len(hub.asked)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pets.write("more.md", "green cat")
    assert refreshed(pets) == (1, 1)
    assert best(pets, "green cat") == "more.md"
    assert len(hub.asked) == asked


def test_hub_that_cannot_be_reached_ends_the_run_and_changes_nothing(pets, hub):
    file = pets.folder / "parquetry.toml"
    file.write_text(file.read_text().replace(hub.url, "http://127.0.0.1:9"))
    told = pets("refresh", "--direct")
    assert told.code == 4
    assert f"so onnx:{MODEL} is not fetched" in told.complaint
    assert "0 documents, 0 chunks" in pets("status").stdout
    assert hub.asked == []


def test_token_of_a_private_model_is_in_no_message_and_no_file(pets, hub, monkeypatch):
    hub.models[MODEL].token = "hf_of_another_account_3141592653"
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    told = pets("refresh", "--direct")
    assert told.code == 2
    assert "the token may not read it" in told.complaint
    hub.models[MODEL].token = TOKEN
    assert refreshed(pets) == (3, 3)
    kept = b"".join(file.read_bytes() for file in pets.folder.rglob("*") if file.is_file())
    assert TOKEN.encode() not in kept + (told.stdout + told.stderr).encode()


def test_cross_encoder_of_the_hub_ranks(pets, hub, tmp_path):
    commit = hub.models.setdefault("acme/cross", Repository()).publish(
        tiny_cross_encoder.build_folder(tmp_path / "cross")
    )
    pets.write("walnut.md", "dry walnut kiln")
    pets.write("lunch.md", "lunch menu lunch")
    configure(pets, hub, "wordllama", f"onnx:acme/cross@{commit}")
    refreshed(pets)
    told = pets("search", "walnut", "-k", 2, "--rerank", "--explain", "--json").json
    assert told["results"][0]["filename"] == "walnut.md"
    assert told["explanation"]["rerank"]["by"] == f"onnx:acme/cross@{commit}"
    asked = len(hub.asked)
    assert pets("search", "walnut", "--rerank").code == 0
    assert len(hub.asked) == asked
