"""`parquetry eval` on a small collection with known right answers."""

import json
import tempfile

import pytest

from parquetry.flows.pipelines.observer import Observer
from parquetry.process_folder import LOCK
from parquetry.ranking.evaluation import read_dataset
from parquetry.serving.cli.eval_command import evaluate_mode, index_dataset
from parquetry.serving.search.service import Reader
from parquetry.settings.sections import parse_settings
from tests.serving.search.counting_cache import CountingCache

pytestmark = pytest.mark.slow

KEYS = ["dataset", "mode", "documents", "queries", "ndcg@10", "recall@100", "mrr@10", "seconds_index", "ms_per_query"]
MODES = ["hybrid", "vector", "text"]
DOCUMENTS = [
    {"_id": "a/oak", "title": "Oak", "text": "The oak table has four legs and costs 640 euros."},
    {"_id": "../pine", "title": "", "text": "Shelves of pine are delivered flat."},
    {"_id": "glue", "title": "Glue", "text": "Bone glue is heated in a water bath, never over a flame."},
    {"_id": "empty", "title": "", "text": ""},
]
QUERIES = [
    {"_id": "1", "text": "How is glue heated?"},
    {"_id": "2", "text": "What does the oak table cost?"},
    {"_id": "3", "text": "pine shelves"},
]
JUDGED = [("1", "glue", 1), ("2", "a/oak", 2), ("3", "../pine", 1)]


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "workshop"
    write(folder, DOCUMENTS, QUERIES, JUDGED)
    return folder


def write(folder, documents, queries, judged):
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, records in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    lines = "".join(f"{query}\t{document}\t{score}\n" for query, document, score in judged)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)


@pytest.mark.parametrize("mode", MODES)
def test_every_right_answer_first_gives_ones(desk, dataset, mode):
    done = desk("eval", dataset, "--mode", mode, "--json")
    assert done.code == 0
    assert list(done.json) == KEYS
    assert [done.json[key] for key in KEYS[:7]] == ["workshop", mode, 4, 3, 1.0, 1.0, 1.0]
    assert done.json["seconds_index"] > 0
    assert done.json["ms_per_query"] > 0


def test_a_wrong_order_is_measured(desk, dataset):
    """The document judged 3 ranks below the one judged 1: 1/1 + 3/log2(rank + 1) of 3/1 + 1/1.58496."""
    write(dataset, DOCUMENTS, QUERIES, [("1", "glue", 1), ("1", "a/oak", 3)])
    done = desk("eval", dataset, "--mode", "vector", "--json")
    ranks = {document: rank for rank, document in enumerate(ranking(desk, dataset, QUERIES[0]["text"]), 1)}
    assert ranks["glue"] == 1
    expected = {2: 0.79671, 3: 0.68853}[ranks["a/oak"]]
    assert (done.json["ndcg@10"], done.json["queries"]) == (expected, 1)


def ranking(desk, dataset, query):
    """Return the order in which a search in a corpus of the same texts finds them."""
    for number, document in enumerate(DOCUMENTS):
        title = f"# {document['title']}\n\n" if document["title"] else ""
        desk.write(f"{number}.md", f"{title}{document['text']}\n")
    (desk.folder / "own.toml").write_text(
        '[corpus]\nroot = "own"\n[[source]]\nname = "own"\nuri = "docs"\ninclude = ["?.md"]\n'
    )
    assert desk("refresh", "--direct", "--config", "own.toml").code == 0
    found = desk("search", query, "--mode", "vector", "-k", "9", "--config", "own.toml", "--json").json["results"]
    return [DOCUMENTS[int(hit["filename"][0])]["_id"] for hit in found]


RULES = "\n\n".join(f"Glue of kind {number} is heated, says rule {number}." for number in range(200))
LONG = {"_id": "long", "title": "Rules", "text": RULES}


@pytest.fixture
def crowded(desk, dataset):
    """Return settings that cut a long document into two hundred chunks, all of them about the first query."""
    (desk.folder / "small.toml").write_text("[chunking]\nsize = 60\noverlap = 0\n[extraction]\nworkers = 1\n")

    def judged(*documents):
        write(dataset, [*DOCUMENTS, LONG], QUERIES, [("1", document, 1) for document in documents])
        return desk("eval", dataset, "--mode", "vector", "--config", "small.toml", "--json").json

    return judged


def test_a_document_stands_where_its_best_chunk_stands(crowded):
    """Its other chunks neither lower its rank nor take the place of others."""
    assert crowded("glue", "long")["ndcg@10"] == 1.0


def test_chunks_of_one_document_do_not_take_the_places_of_a_hundred_documents(crowded):
    assert crowded("long", "../pine")["recall@100"] == 1.0


def test_hundreds_of_chunks_of_every_query_are_not_in_memory_together(dataset, tmp_path):
    """Every query is asked for more chunks, in a batch."""
    queries = [{"_id": str(number), "text": f"glue of kind {number}"} for number in range(8)]
    write(dataset, [*DOCUMENTS, LONG], queries, [(each["_id"], "long", 1) for each in queries])
    settings = {"chunking": {"size": 60, "overlap": 0}, "extraction": {"workers": 1}}
    collection, folder = read_dataset(dataset), tmp_path / "indexed"
    folder.mkdir()
    indexed = index_dataset(collection, parse_settings(settings, "test"), folder, Observer())
    cache = CountingCache()
    with Reader(indexed.settings, cache=cache) as reader:
        done = evaluate_mode(reader, collection, collection.queries, "vector")
    assert done.measures.ndcg == 1.0
    assert cache.held == [1] * 16


def test_all_measures_the_three_modes_on_one_index(desk, dataset):
    done = desk("eval", dataset, "--mode", "all", "--json")
    assert [each["mode"] for each in done.json["results"]] == MODES
    assert len({each["seconds_index"] for each in done.json["results"]}) == 1


def test_people_get_a_table_and_are_told_what_cannot_be_found(desk, dataset):
    write(dataset, DOCUMENTS, QUERIES, [*JUDGED, ("3", "sold", 1)])
    done = desk("eval", dataset, "--mode", "all")
    assert done.stdout.splitlines()[0].split() == KEYS
    assert [line.split()[1] for line in done.stdout.splitlines()[2:]] == MODES
    assert done.stderr.splitlines() == [
        "1 document has no text and cannot be found.",
        "Not in corpus.jsonl, and counted as missed: 1 relevant document.",
    ]


def test_only_the_first_queries_are_asked(desk, dataset):
    assert desk("eval", dataset, "--limit-queries", "2", "--json").json["queries"] == 2


def test_settings_apply_and_nothing_is_left_behind(desk, dataset, tmp_path, monkeypatch):
    """No corpus, no index, and no line in the search log."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (desk.folder / "own.toml").write_text(
        '[corpus]\nroot = "own"\n[embedding]\ndimension = 64\n[extraction]\nworkers = 1\n'
        '[search]\nlog = "searches.jsonl"\nrecord_searches = true\nindex_folder = "indexes"\n'
    )
    before = sorted(path.name for path in desk.folder.iterdir())
    done = desk("eval", dataset, "--mode", "vector", "--config", "own.toml", "--json")
    assert done.json["ndcg@10"] > 0
    assert sorted(path.name for path in desk.folder.iterdir()) == before
    # The folder of this process, which lives on, is empty.
    assert {each.name for each in scratch.rglob("*") if each.is_file()} == {LOCK}


def test_what_is_no_dataset_is_told_in_one_line(desk, dataset):
    (dataset / "qrels" / "test.tsv").unlink()
    done = desk("eval", dataset, "--json")
    assert (done.code, done.stdout) == (2, "")
    assert "test.tsv is missing" in done.complaint


def test_an_embedder_that_is_not_there_stops_before_anything_is_measured(desk, dataset):
    (desk.folder / "own.toml").write_text('[corpus]\nembedder = "onnx:nowhere"\n')
    done = desk("eval", dataset, "--config", "own.toml", "--json")
    assert (done.code, done.stdout) == (2, "")
    assert "nowhere" in done.complaint
