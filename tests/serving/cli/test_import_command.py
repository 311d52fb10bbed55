"""Chunks and vectors out and in again, with the real commands."""

import json

import pytest

from parquetry import connect

pytestmark = pytest.mark.slow

SOURCES = ("--embedder", "wordllama", "--source", "archive")


@pytest.fixture
def dump(desk):
    """Return the rows of an export of everything, and the file that holds them."""
    assert desk("export", "out", "--everything", "--format", "jsonl").code == 0
    file = desk.folder / "out" / "chunks.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()], file


def written(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


def archived():
    """Return path -> id of the imported documents."""
    return dict(connect("corpus").sql("SELECT path, document_id FROM documents WHERE source = 'archive'").fetchall())


def results(desk, corpus, mode, query):
    found = desk("search", query, "--corpus", corpus, "--mode", mode, "--json").json["results"]
    return [(each["text"], each["filename"], each["headings"], round(each["score"], 6)) for each in found]


@pytest.mark.parametrize("form", ["parquet", "jsonl", "chroma", "llamaindex"])
def test_what_is_exported_and_imported_is_found_alike(desk, form):
    made = desk("export", "out", "--everything", "--format", form, "--json").json
    told = desk("import", made["file"], "--corpus", "again", "--embedder", "wordllama", "--json").json
    assert (told["documents"]["added"], told["chunks"]) == (
        made["documents"],
        {"written": made["chunks"], "embedded": 0, "reused": made["chunks"]},
    )
    for mode in ("vector", "text", "hybrid"):
        before, after = (results(desk, corpus, mode, "legs of the oak table") for corpus in ("corpus", "again"))
        assert before
        if form in ("parquet", "jsonl"):
            assert after == before
        else:
            # These formats have no headings, whose words count.
            assert after[0][0] == before[0][0]


def test_import_again_does_nothing_and_a_change_replaces_what_changed(desk, dump):
    rows, file = dump
    first = desk("import", file, *SOURCES, "--json").json
    again = desk("import", file, *SOURCES, "--json").json
    assert (again["version"], again["documents"]["unchanged"]) == (first["version"], first["documents"]["added"])
    changed = next(row for row in rows if row["filename"] == "oak.txt")
    changed["text"] = "The oak table costs 9999 euros."
    third = desk("import", written(file, rows), *SOURCES, "--no-check", "--json").json
    assert (third["documents"]["changed"], third["documents"]["unchanged"]) == (1, first["documents"]["added"] - 1)
    assert third["version"] == first["version"] + 1
    texts = desk("search", "9999", "--source", "archive", "--mode", "text", "--json").json["results"]
    assert [each["text"] for each in texts] == ["The oak table costs 9999 euros."]
    kinds = connect("corpus").sql("SELECT kind, sources, added, changed FROM runs ORDER BY started_at").fetchall()
    assert kinds[-3:] == [
        ("import", ["archive"], first["documents"]["added"], 0),
        ("import", ["archive"], 0, 0),
        ("import", ["archive"], 0, 1),
    ]


def test_imported_documents_stay_when_sources_are_refreshed_and_can_be_removed(desk, dump):
    rows, file = dump
    added = desk("import", file, *SOURCES, "--json").json["documents"]["added"]
    assert desk("refresh", "--direct").code == 0
    assert desk("reindex", "--direct", "--all").code == 0
    assert len(archived()) == added
    identity = archived()[next(row["path"] for row in rows if row["filename"] == "oak.txt")]
    assert "was imported" in desk("reindex", "--direct", identity).complaint
    assert desk("remove", identity).code == 0
    assert len(archived()) == added - 1
    assert desk("doctor").code == 0


def test_bad_rows_are_told_with_number_and_reason_and_the_rest_is_imported(desk, dump):
    rows, file = dump
    good = len(rows)
    rows += [
        {**rows[0], "id": "short", "vector": [1.0]},
        {**rows[0], "id": "nan", "vector": [float("nan")] * 256},
        {**rows[0], "id": "blank", "text": " "},
        rows[1],
        {"id": "\x1b[2Jx", "text": "no vector"},
    ]
    written(file, rows)
    with file.open("a") as stream:
        stream.write("{broken\n")
    done = desk("import", file, *SOURCES, "--strict")
    assert done.code == 1
    lines = [line.split(": ")[1:3] for line in done.stderr.splitlines()]
    assert sorted(lines) == sorted(
        [
            [f"chunks.jsonl, row {good + 1}", "wrong-dimension"],
            [f"chunks.jsonl, row {good + 2}", "not-finite"],
            [f"chunks.jsonl, row {good + 3}", "no-text"],
            [f"chunks.jsonl, row {good + 4}", "duplicate-id"],
            [f"chunks.jsonl, row {good + 5}", "no-vector"],
            [f"chunks.jsonl, row {good + 6}", "not-a-row"],
        ]
    )
    recorded = connect("corpus").sql("SELECT reason FROM failures WHERE stage = 'import'").fetchall()
    assert sorted(reason for (reason,) in recorded) == sorted(reason for _, reason in lines)
    assert f"{good} chunks" in done.stdout
    # What could not be read may be what the source would lose.
    kept = desk("import", written(file, [rows[0], rows[-1]]), *SOURCES, "--replace", "--no-check")
    assert kept.code == 3
    assert "stay, because not all" in kept.stdout


def test_replace_removes_what_the_dump_does_not_hold_under_the_guard_of_a_refresh(desk, dump):
    rows, file = dump
    before = desk("import", file, *SOURCES, "--json").json["documents"]["added"]
    left = [row for row in rows if row["filename"] != "oak.txt"]
    done = desk("import", written(file, left), *SOURCES, "--replace", "--json").json
    assert (done["documents"]["removed"], done["documents"]["unchanged"]) == (1, before - 1)
    (desk.folder / "parquetry.toml").write_text('[corpus]\nroot = "corpus"\n[refresh]\nmax_removed_documents = 0\n')
    refused = desk("import", written(file, left[:1]), *SOURCES, "--replace", "--json")
    assert (refused.code, refused.json["documents"]["removed"]) == (3, 0)
    assert "--allow-removals" in refused.json["refused"][0]


def test_vectors_of_another_model_are_refused(desk, dump):
    rows, file = dump
    version = desk("status", "--json").json["version"]
    other = [{**row, "vector": rows[0]["vector"][::-1]} for row in rows]
    refused = desk("import", written(file, other), *SOURCES)
    assert (refused.code, "median cosine" in refused.complaint) == (3, True)
    wrong = desk("import", file, "--embedder", "openai:text-embedding-3-small")
    assert (wrong.code, "corpus.embedder" in wrong.complaint) == (2, True)
    short = desk("import", written(file, [{**row, "vector": [1.0, 0.0]} for row in rows]), *SOURCES)
    assert (short.code, short.stderr.splitlines()[-1]) == (
        3,
        f"parquetry: no row of the dump can be imported ({len(rows)} x wrong-dimension); nothing was changed",
    )
    assert desk("status", "--json").json["version"] == version


@pytest.mark.parametrize("name", ["docs", "uploads", "file:///x", "a\x1b[2J", ""])
def test_source_that_a_refresh_would_empty_is_refused(desk, dump, name):
    assert desk("import", dump[1], "--embedder", "wordllama", "--source", name).code == 2


def test_vectors_of_a_service_are_imported_without_asking_it(desk, dump, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    rows, file = dump
    (desk.folder / "other.toml").write_text('[corpus]\nroot = "other"\nembedder = "openai:text-embedding-of-ours"\n')
    given = ("--config", "other.toml", "--embedder", "openai:text-embedding-of-ours")
    assert desk("import", written(file, [{**row, "vector": [3.0, 4.0]} for row in rows]), *given).code == 0
    found = connect("other").sql("SELECT DISTINCT embedder, vector FROM chunks").fetchall()
    assert [(embedder.rpartition("@")[2], [round(each, 6) for each in vector]) for embedder, vector in found] == [
        ("2", [0.6, 0.8])
    ]


def test_audience_goes_out_and_comes_back(desk, dump):
    rows, file = dump
    mine = [{**row, "visibility": "individual", "user_id": "ada"} for row in rows]
    assert desk("import", written(file, mine), *SOURCES, "--corpus", "private").code == 0
    assert desk("search", "oak", "--corpus", "private", "--org", "acme", "--json").json["results"] == []
    nothing = desk("export", "public", "--corpus", "private", "--public", "--format", "parquet")
    assert (nothing.code, "nothing to export" in nothing.complaint) == (2, True)
    given = desk("export", "ada", "--corpus", "private", "--user", "ada", "--format", "chroma", "--json").json
    assert given["chunks"] == len(rows)
    assert desk("import", given["file"], "--corpus", "again", "--embedder", "wordllama").code == 0
    seen = connect("again").sql("SELECT DISTINCT visibility, org_id, user_id FROM documents").fetchall()
    assert seen == [("individual", None, "ada")], "a store without a place for the audience has it in its metadata"
    assert desk("import", file, *SOURCES, "--corpus", "private", "--visibility", "public", "--json").json["documents"][
        "changed"
    ]
    assert desk("search", "oak", "--corpus", "private", "--org", "acme", "--json").json["results"]


def test_files_of_engines_have_what_they_load(desk):
    made = {
        form: desk("export", "out", "--everything", "--format", form, "--json").json
        for form in ("pgvector", "qdrant", "beir")
    }
    script = (desk.folder / "out" / "pgvector.sql").read_text("utf-8").splitlines()
    assert script[1] == "CREATE TABLE parquetry_chunks ("
    rows = script[script.index("COPY parquetry_chunks FROM stdin;") + 1 : -1]
    assert [len(row.split("\t")) for row in rows] == [17] * made["pgvector"]["chunks"]
    points = [json.loads(line) for line in (desk.folder / "out" / "points.jsonl").read_text("utf-8").splitlines()]
    assert len({point["id"] for point in points}) == made["qdrant"]["chunks"]
    corpus = [json.loads(line) for line in (desk.folder / "out" / "corpus.jsonl").read_text("utf-8").splitlines()]
    assert len(corpus) == made["beir"]["documents"]
    assert all(set(row) == {"_id", "title", "text", "metadata"} for row in corpus)


def test_export_replaces_a_file_only_when_asked(desk):
    assert desk("export", "out", "--public", "--format", "jsonl").code == 0
    (desk.folder / "out" / "chunks.jsonl").write_text("mine")
    assert "--overwrite" in desk("export", "out", "--public", "--format", "jsonl").complaint
    assert (desk.folder / "out" / "chunks.jsonl").read_text() == "mine"
    assert desk("export", "out", "--public", "--format", "jsonl", "--overwrite").code == 0
    assert desk("export", "out", "--public", "--everything").code == 2
