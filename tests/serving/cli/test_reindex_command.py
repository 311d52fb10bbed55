"""`parquetry reindex` as an operator types it to migrate a corpus, and what `status` and `eval` say meanwhile."""

from __future__ import annotations

import json

import pytest

from parquetry.serving.service.feedback import FeedbackStore, Judge, JudgedResult
from parquetry.serving.state.folder import state_folder
from parquetry.settings.sections import load_settings
from tests.servers.embedding_server import EmbeddingServer
from tests.serving.program import settle

pytestmark = pytest.mark.slow
BUILD = ("reindex", "--direct", "--embeddings-only", "--embedder", "openai:tiny")


@pytest.fixture
def server(desk, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with EmbeddingServer() as server:
        with (desk.folder / "parquetry.toml").open("a") as file:
            file.write(f'[embedding]\nbase_url = "{server.url}"\nprice_per_million_tokens = 2.0\n')
        settle(desk)
        yield server


def flat(text):
    return " ".join(text.split())


def kept_lines(desk):
    """Return what `status` says of chunks of earlier versions, to which candidates do not belong."""
    return [line for line in desk("status").stdout.splitlines() if "kept only for earlier versions" in line]


def test_preview_build_status_switch(desk, server):
    kept = kept_lines(desk)
    preview = desk(*BUILD, "--dry-run")
    assert preview.code == 0
    assert 'Migration to corpus.embedder = "openai:tiny"' in preview.stdout
    assert "Price of openai:tiny: $2 per million tokens" in preview.stdout
    assert desk("status", "--json").json["migration"] is None
    built = desk(*BUILD)
    assert built.code == 0
    assert "Searches are as before. Compare: parquetry eval --candidate." in built.stdout
    told = flat(desk("status").stdout)
    assert 'Migration to corpus.embedder = "openai:tiny", begun' in told
    assert [line for line in kept_lines(desk) if line not in kept] == []
    assert desk("reindex", "--direct", "--dry-run").stdout.splitlines()[-1] == "Nothing is left to build."
    state = desk("status", "--json").json["migration"]
    assert state["built"] == state["documents"] > 0
    switched = desk("reindex", "--direct", "--switch", "--json")
    assert switched.json["migration"]["state"] == "switched"
    assert switched.json["version"] == desk("status", "--json").json["version"]
    status = desk("status")
    assert 'set corpus.embedder = "openai:tiny" instead of "wordllama"' in flat(status.stdout)
    assert desk("search", "--mode", "vector", "leave").code == 0
    refreshed = desk("refresh", "--direct", "--json")
    assert refreshed.json["documents"]["changed"] == 0
    assert desk("history", "--json").json["versions"][0]["kind"] == "migrate"


def test_abandoned(desk, server):
    desk(*BUILD)
    told = desk("reindex", "--abandon")
    assert (told.code, told.stdout.split(":")[0]) == (0, "Abandoned")
    assert desk("status", "--json").json["migration"] is None
    again = desk("reindex", "--abandon")
    assert again.code == 2
    assert "is being built" in again.complaint


def test_chunks_of_another_size(desk, server):
    done = desk("reindex", "--direct", "--chunks-only", "--chunk-size", "300", "--chunk-overlap", "0", "--json")
    assert done.json["migration"]["settings"] == {
        "chunking.size": {"before": 1200, "after": 300},
        "chunking.overlap": {"before": 200, "after": 0},
    }
    desk("reindex", "--direct", "--switch")
    rows = desk("sql", 'SELECT max("end" - start) FROM chunks', "--json").json["rows"]
    assert 0 < rows[0][0] <= 300
    assert server.requests == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--chunks-only",), "--chunks-only needs --chunk-size or --chunk-overlap"),
        (("--switch", "--abandon"), "give one of them"),
        (("--switch", "--embedder", "wordllama"), "name no other"),
        (("--chunk-size", "300", "--namespace", "hr"), "leave out --namespace"),
        (("--switch", "--namespace", "hr"), "--namespace needs --embedder"),
        (("--embedder", "openai:tiny", "--all"), "a migration is of all documents"),
        (("--embedder", "word2vec"), "which is not an embedder"),
        (("--chunk-size", "3"), "Input should be greater than or equal to 16"),
        (("--chunk-size", "20"), "overlap (200) must be smaller than size (20)"),
        (("--switch",), "no migration of"),
        (("--embedder", "wordllama"), "there is nothing to migrate"),
    ],
)
def test_wrong_use_is_one_line(desk, server, arguments, complaint):
    told = desk("reindex", "--direct", *arguments)
    assert told.code == 2
    assert complaint in told.complaint


def judge(desk, *judgements):
    store = FeedbackStore(state_folder(load_settings(desk.folder / "parquetry.toml")))
    for number, (query, document, relevant) in enumerate(judgements):
        store.judge(Judge(f"user-{number}"), query, JudgedResult("default", document), relevant=relevant)
    store.close()


def documents(desk):
    return {each["filename"]: each["document_id"] for each in desk("documents", "--json").json["documents"]}


def test_feedback_is_exported_as_a_collection_that_eval_reads(desk, server):
    leave = documents(desk)["leave.md"]
    judge(desk, ("parental\tleave", leave, True), ("oak", leave, False), ("gone", "no-such-document", True))
    for wrong in (("--public", "--format", "beir"), ("--everything", "--format", "jsonl")):
        assert desk("export", "out", *wrong, "--feedback").code == 2
    export = ("export", "out", "--everything", "--format", "beir", "--feedback", "--json")
    made = desk(*export).json
    assert (made["queries"], made["judgements"]) == (2, 2)
    again = desk(*export)
    assert (again.code, "exists already" in again.complaint) == (2, True)
    assert desk(*export, "--overwrite").code == 0
    assert (desk.folder / "out" / "queries.jsonl").stat().st_mode & 0o077 == 0
    measured = desk("eval", "out", "--mode", "text", "--json").json
    # A query of which no document is relevant is none to measure by.
    assert (measured["documents"], measured["queries"], measured["recall@100"]) == (made["documents"], 1, 1.0)


def test_eval_compares_both_on_the_feedback_of_users(desk, server):
    none = desk("eval")
    assert (none.code, "was judged relevant yet" in none.complaint) == (2, True)
    document, other = list(documents(desk).values())[:2]
    judge(desk, ("parental leave", document, False), ("parental leave", document, True), ("oak", other, True))
    judge(desk, ("nothing of it", document, False), ("gone", "no-such-document", True))
    alone = desk("eval", "--json").json
    assert (alone["corpus"], alone["queries"]) == ("current", 2)
    early = desk("eval", "--candidate")
    assert (early.code, "is being built" in early.complaint) == (2, True)
    desk(*BUILD)
    compared = desk("eval", "--candidate", "--mode", "all", "--json")
    rows = compared.json["results"]
    assert [(row["corpus"], row["mode"]) for row in rows] == [
        (corpus, mode) for mode in ("hybrid", "vector", "text") for corpus in ("current", "candidate")
    ]
    # Words are ranked alike by both.
    one, two = [{**row, "corpus": "", "ms_per_query": 0} for row in rows if row["mode"] == "text"]
    assert one == two
    assert all(0 <= row[key] <= 1 for row in rows for key in ("ndcg@10", "recall@100", "mrr@10", "judged@10"))
    assert "Left out, because no document was judged relevant: 2 queries." in compared.stderr
    assert desk("status", "--json").json["migration"]["state"] == "building"


def test_eval_compares_both_on_a_collection(desk, server, tmp_path):
    folder = tmp_path / "collection"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(json.dumps({"_id": "a", "title": "", "text": "The oak table."}) + "\n")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "1", "text": "oak table"}) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n")
    desk(*BUILD)
    rows = desk("eval", folder, "--candidate", "--json").json["results"]
    assert [(row["corpus"], row["ndcg@10"]) for row in rows] == [("current", 1.0), ("candidate", 1.0)]
    assert any("The oak table." in request.inputs for request in server.requests)
