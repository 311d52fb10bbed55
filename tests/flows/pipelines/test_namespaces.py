"""Namespaces with their own embedders in one corpus: refreshed in one run, searched separately and together."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from parquetry.embed.registry import id_of
from parquetry.errors import SettingsError
from parquetry.flows.pipelines.documents import run_refresh
from parquetry.flows.pipelines.reindex import reindex_request
from parquetry.serving.cli.progress import Observer
from parquetry.serving.search.service import SearchRequest
from parquetry.settings.sections import Settings, parse_settings
from parquetry.storage.connect import connect
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.search.filters import Caller, Filters
from parquetry.tasks.engine.base import DirectEngine
from tests.embed.tiny_onnx import build_folder
from tests.servers.embedding_server import EmbeddingServer
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

BUNDLED = "wordllama:l2-supercat/1@256"
ANIMALS = {
    "cat.md": "A red cat runs.\n",
    "dog.md": "A green dog sleeps.\n\nThe blue dog runs and runs.\n",
    "bird.md": "The red bird sleeps.\n",
}
RULES = {"leave.md": "Everybody has thirty days of leave.\n", "pets.md": "No dog may enter hall two.\n"}


class Annex(Workshop):
    """Rules in the corpus's default namespace, and animals in namespace `zoo` with its own embedding model."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.zoo: dict[str, Any] = {"name": "zoo", "embedder": self.model("tiny", seed=0)}
        self.zoo_source: dict[str, Any] = {}
        self.sections["chunking"] = {"size": 40, "overlap": 0}
        for path, text in RULES.items():
            self.write(f"rules/{path}", text)
        for path, text in ANIMALS.items():
            self.write(f"animals/{path}", text)

    def model(self, name: str, seed: int) -> str:
        return "onnx:" + build_folder(self.root / name, seed=seed)

    @property
    def settings(self) -> Settings:
        animals = {"name": "docs", "uri": str(self.folder / "animals"), "namespace": "zoo", **self.zoo_source}
        return parse_settings(
            {
                **self.sections,
                "corpus": {"root": str(self.root / "corpus"), **self.sections.get("corpus", {})},
                "namespace": [self.zoo] if self.zoo else [],
                "source": [{"name": "docs", "uri": str(self.folder / "rules")}, animals],
            },
            "test",
        )

    @property
    def zoo_id(self) -> str:
        return id_of(self.settings.embedder_of("zoo"), self.settings.embedding)

    def chunks(self) -> list[tuple[Any, ...]]:
        """Return all columns of all chunks except the revision."""
        found: list[tuple[Any, ...]] = (
            self.reader()
            .tables.execute(
                """SELECT chunk_id, namespace, filename, start, "end", text, text_hash, tokens, embedder,
                    vector::VARCHAR FROM chunks ORDER BY chunk_id"""
            )
            .fetchall()
        )
        return found

    def embedders(self) -> dict[str, set[str]]:
        """Return namespace -> models that embedded its chunks."""
        chunks = self.chunks()
        return {name: {each[8] for each in chunks if each[1] == name} for name in ("default", "zoo")}

    def found(self, query: str, filters: Filters | None = None, **options: Any) -> list[tuple[str, float]]:
        request = SearchRequest(query, filters=filters or Filters(), **options)
        return [(hit.row["filename"], round(hit.score, 9)) for hit in self.reader().search(request).hits]


@pytest.fixture
def unread(tmp_path):
    return Annex(tmp_path)


@pytest.fixture
def annex(unread):
    unread.refresh()
    return unread


ZOO, OWN = Filters(namespaces=("zoo",)), Filters(namespaces=("default",))


# --- refresh


def test_one_run_embeds_every_namespace_by_its_own_model(unread):
    report = unread.refresh()
    assert (report.documents.added, report.work.chunks_embedded) == (5, 6)
    assert unread.embedders() == {"default": {BUNDLED}, "zoo": {unread.zoo_id}}
    dimensions = unread.reader().tables.execute(
        "SELECT DISTINCT namespace, len(vector) FROM chunks UNION SELECT DISTINCT namespace, len(vector) FROM texts"
    )
    assert sorted(dimensions.fetchall()) == [("default", 256), ("zoo", 6)]
    assert examine(unread.lake).findings == ()


def test_same_text_is_embedded_once_by_each_model(unread):
    for folder in ("rules", "animals"):
        for copy in ("one.md", "two.txt"):
            unread.write(f"{folder}/{copy}", "The blue cat sleeps.\n")
    unread.refresh()
    same = [each for each in unread.chunks() if each[5].startswith("The blue cat")]
    assert len(same) == 4
    assert len({each[6] for each in same}) == 1
    assert len({each[9] for each in same}) == 2
    assert unread.refresh().work.chunks_written == 0


def test_incremental_refresh_equals_a_rebuild(annex):
    annex.write("rules/leave.md", "Everybody has forty days of leave.\n")
    annex.write("animals/dog.md", "A green dog sleeps.\n\nThe red dog runs and runs.\n")
    annex.write("animals/leave.md", "Everybody has thirty days of leave.\n")
    (annex.folder / "animals" / "bird.md").unlink()
    (annex.folder / "animals" / "cat.md").rename(annex.folder / "animals" / "cats.md")
    report = annex.refresh()
    # The text that moved from the other namespace has a vector there, but none of this model.
    assert report.work.chunks_embedded == 3
    searches = [("red dog", ZOO), ("days of leave", OWN), ("dog", Filters())]

    def state() -> Any:
        answers = [
            annex.found(query, filters, mode=mode) for query, filters in searches for mode in ("vector", "hybrid")
        ]
        return annex.chunks(), answers

    incremental = state()
    assert list(annex.plan().changes) == []
    annex.sections["corpus"] = {"root": str(annex.root / "rebuilt")}
    annex.refresh()
    assert state() == incremental


def test_changed_embedder_of_a_namespace_embeds_its_chunks_again_and_no_others(annex):
    before = annex.chunks()
    rules = [row for row in before if row[1] == "default"]
    zoo = {"name": "zoo", "embedder": annex.model("other", seed=1)}
    first, annex.zoo = annex.zoo, zoo
    efforts = {(change.namespace, change.effort) for change in annex.plan().changes}
    assert efforts == {("zoo", "rechunk")}
    report = annex.refresh()
    assert (report.documents.changed, report.documents.unchanged) == (3, 2)
    assert report.work.chunks_embedded == report.work.chunks_written == 4
    assert report.work.bytes_read == 0
    assert annex.embedders() == {"default": {BUNDLED}, "zoo": {annex.zoo_id}}
    assert [row for row in annex.chunks() if row[1] == "default"] == rules
    # After switching back, the vectors of the first model are still there.
    annex.zoo = first
    again = annex.refresh()
    assert (again.work.chunks_written, again.work.chunks_embedded) == (4, 0)
    assert annex.chunks() == before


def test_namespace_without_a_table_of_its_own_falls_back_to_the_corpus(annex):
    annex.zoo = {}
    assert annex.refresh().work.chunks_embedded == 4
    assert annex.embedders() == {"default": {BUNDLED}, "zoo": {BUNDLED}}


def test_reindexed_embeddings_are_of_the_namespaces_model(annex):
    before = annex.chunks()
    request = reindex_request(annex.settings, ("dog.md",), "zoo", embeddings_only=True)
    report = run_refresh(request, DirectEngine(), Observer())
    assert (report.documents.changed, report.work.chunks_embedded) == (1, 2)
    assert annex.chunks() == before


def test_tokens_are_those_of_the_namespaces_model(unread):
    """The tiny model counts a word as one token, the bundled model as several."""
    text = "extraordinarily " * 60
    unread.sections["chunking"] = {"size": 20, "overlap": 0, "unit": "tokens"}
    unread.write("rules/words.md", text)
    unread.write("animals/words.md", text)
    assert unread.refresh().documents.added == 7
    chunks = [each for each in unread.chunks() if each[2] == "words.md"]
    counts = {name: sum(each[1] == name for each in chunks) for name in ("default", "zoo")}
    assert counts["zoo"] == 3
    assert counts["default"] > 2 * counts["zoo"]
    # Another model has another token count.
    unread.zoo = {}
    unread.refresh()
    assert sum(each[1:3] == ("zoo", "words.md") for each in unread.chunks()) == counts["default"]


def test_plan_prices_what_a_paid_model_embeds(unread):
    unread.sections["embedding"] = {"price_per_million_tokens": 1000.0}
    everything = unread.plan().estimate
    assert (everything.tokens > 0, everything.cost_usd) == (True, 0)
    unread.sections["embedding"] |= {"base_url": "http://127.0.0.1:9/v1", "api_key": "x", "dimension": 64}
    unread.zoo = {"name": "zoo", "embedder": "openai:m"}
    animals = sum(len(text) for text in ANIMALS.values())
    assert unread.plan().estimate.likely.cost_usd == pytest.approx(animals / 4 * 1000 / 1e6, rel=0.01)


def test_embedder_of_a_namespace_that_is_none_stops_only_runs_that_need_it(unread):
    unread.zoo = {"name": "zoo", "embedder": "magic"}
    with pytest.raises(SettingsError, match="the settings name 'magic', which is not an embedder"):
        unread.refresh()
    assert unread.refresh(namespace="default").documents.added == 2


# --- search


def test_each_namespace_is_searched_by_its_own_model(annex):
    (best, *_) = annex.found("red cat runs", ZOO, mode="vector")
    assert best[0] == "cat.md"
    (best, *_) = annex.found("holidays", OWN, mode="vector")
    assert best[0] == "leave.md"


def test_search_across_models_fuses_their_lists_by_rank(annex):
    zoo, own = annex.found("dog", ZOO, mode="vector"), annex.found("dog", OWN, mode="vector")
    both = annex.found("dog", mode="vector", k=10)
    assert {name for name, _ in both[:2]} == {zoo[0][0], own[0][0]}
    assert len(both) == 6
    for alone in (zoo, own):
        # The ranking of one model keeps its order among the results of the others.
        names = [name for name, _ in alone]
        together = [name for name, _ in both if name in names]
        assert together == names
    assert {name for name, _ in annex.found("dog", k=10)} == {name for name, _ in both}


def test_caller_who_may_not_see_a_namespace_needs_no_model_of_it(unread):
    """The caller learns nothing about the namespace: neither its documents, nor that its model cannot be opened."""
    unread.zoo_source = {"visibility": "individual", "user_id": "keeper"}
    unread.refresh()
    own = [unread.found("dog", OWN, mode=mode) for mode in ("vector", "text", "hybrid")]
    shutil.rmtree(unread.root / "tiny")
    stranger = Filters(caller=Caller("stranger"))
    assert [unread.found("dog", stranger, mode=mode) for mode in ("vector", "text", "hybrid")] == own
    keeper = Filters(caller=Caller("keeper"))
    with pytest.raises(SettingsError, match="tiny of an `onnx:` embedder does not exist"):
        unread.found("dog", keeper)
    assert len(unread.found("dog", keeper, mode="text")) == 3


def test_namespace_is_found_while_the_model_of_the_others_is_out_of_reach(annex):
    annex.sections["corpus"] = {"embedder": "onnx:" + str(annex.root / "missing")}
    assert annex.found("red cat runs", ZOO)[0][0] == "cat.md"


def test_vectors_of_a_model_that_the_settings_do_not_name_are_refused_with_namespace_and_remedy(annex):
    stored, annex.zoo = annex.zoo_id, {}
    wanted = f"namespace zoo was embedded by {stored}, which the settings do not name (wordllama is {BUNDLED}); search"
    for filters in (ZOO, Filters()):
        with pytest.raises(SettingsError, match=re.escape(wanted)):
            annex.found("dog", filters)
    assert annex.found("days of leave", OWN)[0][0] == "leave.md"
    assert len(annex.found("dog", mode="text")) == 3


def test_namespace_is_searched_by_its_old_model_until_it_is_refreshed_as_long_as_the_settings_name_it(annex):
    """Operators can switch the model of a namespace without a gap in search."""
    before = annex.found("days of leave", OWN)
    annex.sections["corpus"] = {"embedder": annex.zoo["embedder"]}
    annex.zoo = {"name": "zoo", "embedder": "wordllama"}
    assert annex.found("days of leave", OWN) == before


def test_services_are_asked_once_for_each_model(unread):
    """Vectors of one model are not used for another's."""
    with EmbeddingServer() as server:
        unread.sections |= {"embedding": {"base_url": server.url, "api_key": "x"}, "corpus": {"embedder": "openai:a"}}
        unread.zoo = {"name": "zoo", "embedder": "openai:b"}
        unread.refresh()
        asked = len(server.requests)
        list(unread.reader().search_all([SearchRequest(query, "vector") for query in ("dog", "cat")]))
        assert sorted(each.body["model"] for each in server.requests[asked:]) == ["a", "b"]


def test_function_embed_of_a_corpus_with_one_model_finds_the_namespaces_own(unread):
    unread.refresh(namespace="zoo")
    connection = connect(unread.settings.corpus.root, settings=unread.settings)
    found = connection.execute("SELECT filename FROM search_hybrid('red cat runs', 1)").fetchall()
    connection.close()
    assert found == [("cat.md",)]
