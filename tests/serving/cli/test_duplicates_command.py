"""`parquetry search` output for texts that occur in several places."""

import json
import os
from datetime import UTC, datetime

import pytest

from tests.servers.chat_server import ChatServer, said
from tests.serving.program import settle

pytestmark = pytest.mark.slow

PLACE = [
    "chunk_id", "document_id", "uri", "path", "filename", "title", "namespace", "source", "modified_at", "page",
    "headings", "span",
]  # fmt: skip
WALNUT = "# Trees\n\nThe walnut is a tall tree.\n"


@pytest.fixture
def trees(desk):
    """Refresh four copies of one text, and another text on the same subject."""
    for number, path in enumerate(("a.md", "sub/b.md", "c.md", "d.md")):
        desk.write(path, WALNUT)
        os.utime(desk.folder / "docs" / path, (0, 86_400 * number))
    desk.write("kiln.md", "# Kiln\n\nThe walnut is dried for weeks.\n")
    settle(desk)
    return desk


def results(desk, *arguments):
    told = desk("search", "walnut", *arguments, "--json")
    assert (told.code, told.stderr) == (0, "")
    return told.json["results"]


def paths(result):
    return [result["path"], *(place["path"] for place in result["also_in"])]


@pytest.mark.parametrize("level", ["chunk", "document"])
@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
def test_equal_texts_are_one_result_that_lists_the_other_places(trees, mode, level):
    first, second, *_ = results(trees, "--mode", mode, "--level", level, "-k", 2)
    copies, kiln = (first, second) if first["also_in"] else (second, first)
    assert sorted(paths(copies)) == ["a.md", "c.md", "d.md", "sub/b.md"]
    assert (copies["also_in_count"], kiln["also_in_count"], paths(kiln)) == (3, 0, ["kiln.md"])
    for place in copies["also_in"]:
        assert list(place) == PLACE
        alone = trees("show", place["document_id"], "--json").json
        assert (place["uri"], place["path"], place["source"]) == (alone["uri"], alone["path"], alone["source"])
        assert alone["text"][slice(*place["span"])] == copies["text"]


@pytest.mark.parametrize("level", ["chunk", "document"])
def test_with_duplicates_each_is_a_result(trees, level):
    found = results(trees, "--mode", "text", "--level", level, "-k", 9, "--duplicates")
    assert sorted(result["path"] for result in found) == ["a.md", "c.md", "d.md", "kiln.md", "sub/b.md"]
    assert [result["also_in"] for result in found] == [[]] * 5


def test_result_names_its_path_its_source_and_when_it_was_modified(trees):
    (result,) = results(trees, "--filename", "sub/*", "--mode", "text")
    assert (result["path"], result["filename"], result["source"]) == ("sub/b.md", "b.md", "docs")
    assert datetime.fromisoformat(result["modified_at"]) == datetime(1970, 1, 2, tzinfo=UTC)


def test_people_see_the_other_places_below_the_first(trees):
    told = trees("search", "walnut", "--mode", "text").stdout
    (line,) = [line for line in told.splitlines() if "also in" in line]
    names = line.removeprefix("    also in: ").split(", ")
    assert len(set(names)) == 3
    assert set(names) < {"a.md", "sub/b.md", "c.md", "d.md"}
    assert "2 results in" in told
    assert "also in" in trees("search", "walnut", "--mode", "text", "--context", 1).stdout
    assert "also in" not in trees("search", "walnut", "--mode", "text", "--duplicates").stdout


def test_many_places_are_counted_and_the_first_are_listed(trees):
    for number in range(30):
        trees.write(f"more/{number}.md", WALNUT)
    settle(trees)
    (copies,) = [result for result in results(trees, "--mode", "text", "-k", 2) if result["also_in"]]
    assert (len(copies["also_in"]), copies["also_in_count"]) == (20, 33)
    assert "(+30)" in trees("search", "walnut", "--mode", "text", "-k", 2).stdout


def test_reranker_is_paid_for_one_of_equal_texts(trees):
    judged = json.dumps({"ranking": [{"n": 1, "score": 0.5}, {"n": 2, "score": 0.4}]})
    with ChatServer([said(judged)]) as server:
        settings = trees.folder / "parquetry.toml"
        settings.write_text(
            f'{settings.read_text()}[search]\nrerank = "llm"\n[llm]\nmodel = "m"\nbase_url = "{server.url}"\n'
        )
        found = results(trees, "--mode", "text", "--rerank", "-k", 2)
    (asked,) = [json.loads(body["messages"][1]["content"]) for body in server.bodies]
    assert len(asked["passages"]) == 2
    assert sorted(len(result["also_in"]) for result in found) == [0, 3]


def test_text_is_as_old_as_in_the_newest_of_its_places(trees):
    os.utime(trees.folder / "docs" / "kiln.md", (0, 86_400))
    settle(trees)
    aged = trees("search", "walnut", "--mode", "text", "--recency", 1, "--explain", "--json").json["results"]
    days = {result["also_in_count"]: result["explanation"]["recency"]["days"] for result in aged}
    # The newest copy is of day 3, the other text of day 1.
    assert days[0] - days[3] == pytest.approx(2, abs=0.01)


def test_eval_counts_copies_as_documents_of_their_own(desk, tmp_path):
    """Both are judged relevant, and a direct search finds both."""
    folder = tmp_path / "collection"
    (folder / "qrels").mkdir(parents=True)
    texts = {"1": "Bone glue is heated.", "2": "Bone glue is heated.", "3": "The oak table."}
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": name, "title": "", "text": text}) + "\n" for name, text in texts.items())
    )
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "glue"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\nq\t2\t1\n")
    measures = desk("eval", folder, "--mode", "text", "--json").json
    assert (measures["ndcg@10"], measures["recall@100"]) == (1.0, 1.0)
