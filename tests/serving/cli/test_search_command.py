"""Output of `parquetry search`: citations, context, whole texts, explanations, many queries, documents."""

import json

import pytest

from tests.serving.program import settle

pytestmark = pytest.mark.slow

CITATION = ["marker", "source", "uri", "kind", "page", "span", "snippet", "snippet_span", "header", "header_span"]
LONG = "\n\n".join(
    f"## Part {number}\n\n" + f"This is what part {number} says of the {wood} and of nothing else at all. " * 3
    for number, wood in enumerate(["oak", "elm", "ash", "yew", "fir", "box"])
)
KEYS = [
    "chunk_id", "document_id", "uri", "path", "filename", "title", "namespace", "source", "modified_at", "page",
    "headings", "span", "text", "score", "relevance", "scores", "tags", "metadata", "what", "also_in", "also_in_count",
]  # fmt: skip


@pytest.fixture
def woods(desk):
    """Refresh two documents of six overlapping chunks each."""
    settings = desk.folder / "parquetry.toml"
    settings.write_text(settings.read_text() + "[chunking]\nsize = 200\noverlap = 60\n")
    desk.write("woods.md", LONG)
    desk.write("copies/woods.md", LONG.replace("of nothing", "also of something"))
    settle(desk)
    return desk


def answer(desk, *arguments):
    told = desk("search", *arguments, "--json")
    assert (told.code, told.stderr) == (0, "")
    return told.json


def whole_text(desk, document_id):
    return desk("show", document_id, "--json").json["text"]


# --- citations


def test_citations_quote_the_stored_text_and_mark_its_place(woods):
    found = answer(woods, "the yew", "--mode", "text", "--citations", "-k", 4)
    assert list(found) == ["query", "mode", "version", "seconds", "results", "bibliography"]
    for result in found["results"]:
        assert list(result) == [*KEYS, "citation"]
        cited = result["citation"]
        assert list(cited) == CITATION
        text = whole_text(woods, result["document_id"])
        assert text[slice(*cited["snippet_span"])] == cited["snippet"]
        assert cited["span"] == result["span"]
        assert cited["uri"] == result["uri"]
        assert cited["source"] == "docs"
    assert "yew" in found["results"][0]["citation"]["snippet"]
    lines = {each["marker"]: each["line"] for each in found["bibliography"]}
    assert set(lines) == {result["citation"]["marker"] for result in found["results"]}
    assert len(set(lines.values())) == len(lines)


def test_citations_for_people_quote_and_list_the_sources(woods):
    told = woods("search", "the yew", "--mode", "text", "--citations", "-k", 2).stdout
    assert "says of the yew and" in " ".join(told.split())
    results, sources = told.split("Sources:\n")
    assert results.startswith("[1] ")
    assert sources.startswith("[1] ")
    assert "file:///" in sources.splitlines()[0]


def test_result_without_being_asked_has_the_promised_keys_alone(woods):
    found = answer(woods, "the yew")
    assert list(found) == ["query", "mode", "version", "seconds", "results"]
    assert all(list(result) == KEYS for result in found["results"])


def test_citation_from_a_table_quotes_the_row_that_answers_with_its_header(desk):
    """Neither the row alone nor the header alone is informative."""
    rows = [f"{wood},{price},{price // 7}" for price, wood in enumerate(["oak", "elm", "ash", "yew", "fir"] * 20, 640)]
    desk.write("prices.csv", "wood,price,pieces in stock\n" + "\n".join(rows) + "\nbog oak,99,1\n")
    settle(desk)
    (result, *_) = answer(desk, "price of bog oak", "--mode", "text", "--citations", "-k", 1)["results"]
    cited = result["citation"]
    assert cited["snippet"] == "| bog oak | 99 | 1 |"
    assert cited["header"] == "| wood | price | pieces in stock |"
    text = whole_text(desk, result["document_id"])
    for key in ("snippet", "header"):
        assert text[slice(*cited[f"{key}_span"])] == cited[key]
    told = desk("search", "price of bog oak", "--mode", "text", "--citations", "-k", 1).stdout.splitlines()
    assert told[1:3] == ["    | wood | price | pieces in stock |", "    | bog oak | 99 | 1 |"]
    plain = desk("search", "price of bog oak", "--mode", "text", "-k", 1).stdout.splitlines()
    assert plain.index("    | wood | price | pieces in stock |") < plain.index("    | bog oak | 99 | 1 |")


def test_code_in_results_keeps_its_lines(desk):
    code = (
        "def saw(board):\n    if board.wet:\n\treturn None\n    return cut(board, 'a very long name of a blade' * 4)\n"
    )
    desk.write("saw.py", code)
    desk.write("saw.md", f"# Sawing\n\nWet boards\nare not sawn:\n\n```python\n{code}```\n")
    settle(desk)
    lines = [
        "    def saw(board):",
        "        if board.wet:",
        "        return None",
        "        return cut(board, 'a very long name of a blade' * 4)",
    ]
    for glob in ("saw.py", "saw.md"):
        told = desk("search", "cut None blade", "--mode", "text", "--filename", glob, "-k", 1).stdout.splitlines()
        start = told.index(lines[0])
        assert told[start : start + 4] == lines


# --- context


@pytest.mark.parametrize("context", [0, 1, 3, 50])
def test_passages_are_exact_and_hold_their_hits(woods, context):
    found = answer(woods, "the yew and the ash", "--mode", "text", "--context", context, "-k", 6)
    spans = {}
    for number, passage in enumerate(found["passages"]):
        text = whole_text(woods, passage["document_id"])
        start, end = passage["span"]
        assert text[start:end] == passage["text"]
        for hit in passage["hits"]:
            result = found["results"][hit["result"]]
            assert (result["chunk_id"], result["span"], result["passage"]) == (hit["chunk_id"], hit["span"], number)
            assert start <= hit["span"][0] < hit["span"][1] <= end
        for other_start, other_end in spans.setdefault(passage["document_id"], []):
            assert end < other_start or other_end < start
        spans[passage["document_id"]].append((start, end))
    assert sum(len(passage["hits"]) for passage in found["passages"]) == len(found["results"])
    if context == 50:
        assert len(found["passages"]) == 2


def test_context_is_the_chunks_before_and_after(woods):
    found = answer(woods, "the yew", "--mode", "text", "--context", 1, "-k", 1)
    (result,), (passage,) = found["results"], found["passages"]
    chunks = woods("chunks", result["document_id"], "--json").json["chunks"]
    (index,) = [each["chunk_index"] for each in chunks if each["chunk_id"] == result["chunk_id"]]
    assert passage["span"] == [chunks[index - 1]["start"], chunks[index + 1]["end"]]


def test_passages_for_people_mark_the_hit_and_repeat_nothing(woods):
    told = woods("search", "the yew", "--mode", "text", "--context", 1, "-k", 1).stdout
    marked = [line for line in told.splitlines() if line.startswith("  > ")]
    assert any("yew" in line for line in marked)
    assert not any("box" in line for line in marked)
    assert told.count("## Part 3") == 1


# --- whole texts


def test_full_gives_each_document_once(woods):
    found = answer(woods, "the yew", "--mode", "text", "--full", "-k", 6)
    documents = found["documents"]
    assert [each["document_id"] for each in documents] == list(
        dict.fromkeys(result["document_id"] for result in found["results"])
    )
    for each in documents:
        assert list(each) == ["document_id", "uri", "filename", "title", "text"]
        assert each["text"] == whole_text(woods, each["document_id"])


# --- explanation


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_explanation_tells_ranks_scores_and_stages(woods, mode):
    found = answer(woods, "the yew", "--mode", mode, "--explain")
    how = found["explanation"]
    assert (how["version"], how["cached"], how["documents"]) == (found["version"], False, 6)
    assert ("fusion" in how) == (mode == "hybrid")
    assert {"open", "filter", "embed", "details"} <= set(how["seconds"])
    for number, result in enumerate(found["results"], 1):
        sides = result["explanation"]
        assert set(sides) == {"vector", "text", "rerank"}
        for side, told in sides.items():
            assert (told is None) == (result["scores"][side] is None)
            assert told is None or told["score"] == result["scores"][side]
            for part in ("identity", "headings"):
                assert (part in (told or {})) == (told is not None and side == "text")
        if mode != "hybrid":
            assert sides[mode]["rank"] == number


def test_explanation_says_which_index_answered(woods):
    newest = answer(woods, "the oak", "--explain")["explanation"]
    old = answer(woods, "the oak", "--explain", "--version", 1)["explanation"]
    assert (newest["version"], newest["index"]) == (3, "file")
    assert (old["version"], old["index"]) == (1, "memory")
    assert "made in memory of version 1" in " ".join(woods("search", "oak", "--explain", "--version", 1).stdout.split())


def test_explanation_for_people_names_the_sides(woods):
    told = woods("search", "the yew", "--explain").stdout
    assert "found by vector (" in told
    assert "Searched: " in told
    assert "Left out, because they say nothing: the." in told


def test_explanation_names_the_words_of_the_query_in_the_headings(woods):
    asked = ("yew of part 3", "--mode", "text", "--explain", "-k", 1)
    (result,) = answer(woods, *asked)["results"]
    assert result["headings"] == ["Part 3"]
    assert result["explanation"]["text"]["headings"] == ["3", "part"]
    assert "; in headings: 3, part)" in woods("search", *asked).stdout


# --- many queries


def test_file_of_queries_gives_a_line_of_json_for_each(woods):
    (woods.folder / "queries.txt").write_text("the yew\n\nthe box\nthe yew\n")
    told = woods("search", "--queries", "queries.txt", "--json", "-k", 2, "--citations")
    assert (told.code, told.stderr) == (0, "")
    found = [json.loads(line) for line in told.stdout.splitlines()]
    assert [each["query"] for each in found] == ["the yew", "the box", "the yew"]
    for each in found:
        alone = answer(woods, each["query"], "-k", 2, "--citations")
        assert {**each, "seconds": 0} == {**alone, "seconds": 0}


def test_queries_of_json_name_their_own_mode_and_number(woods, monkeypatch):
    (woods.folder / "queries.jsonl").write_text(
        '{"query": "yew", "k": 1, "mode": "text"}\n{"query": "box", "mode": "vector"}\n{"query": "elm"}\n'
    )
    told = woods("search", "--queries", "queries.jsonl", "--json", "-k", 3)
    found = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(each["mode"], len(each["results"])) for each in found] == [("text", 1), ("vector", 3), ("hybrid", 3)]


def test_queries_for_people_are_told_one_after_the_other(woods):
    (woods.folder / "queries.txt").write_text("the yew\nthe box\n")
    told = woods("search", "--queries", "queries.txt", "-k", 1, "--mode", "text").stdout
    assert told.startswith("the yew\n\n[1] ")
    assert told.count("1 result in") == 2
    assert "\n\nthe box\n\n[1] " in told


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("yew", "--queries", "queries.txt"), "both a query and --queries queries.txt are given; give one"),
        (("--queries", "nothing.txt"), "queries cannot be read from nothing.txt: No such file or directory"),
        (("yew", "--context", "-1"), "Invalid value for '--context'"),
        (("yew", "--level", "page"), "'page' is not one of 'chunk', 'document'"),
    ],
)
def test_wrong_use_of_search_is_one_line(desk, arguments, problem):
    told = desk("search", *arguments)
    assert told.code == 2
    assert problem in told.complaint


# --- documents


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_documents_are_ranked_by_their_best_chunk(woods, mode):
    found = answer(woods, "the yew and the oak", "--mode", mode, "--level", "document", "-k", 3)
    assert found["level"] == "document"
    best = {}
    for result in answer(woods, "the yew and the oak", "--mode", mode, "-k", 100)["results"]:
        best.setdefault(result["document_id"], result["chunk_id"])
    assert [(each["document_id"], each["chunk_id"]) for each in found["results"]] == list(best.items())[:3]
    assert len(best) >= 3


def test_documents_for_people_are_counted_as_such(woods):
    told = woods("search", "the yew", "--level", "document", "--mode", "text").stdout
    assert "documents in" in told.splitlines()[-1]


# --- filters that only the command line has


def test_filters_of_the_command_line_reach_the_search(woods):
    def files(*options):
        return {each["uri"].rpartition("/docs/")[2] for each in answer(woods, "yew", "-k", 50, *options)["results"]}

    assert files("--where", "path LIKE 'copies/%'") == {"copies/woods.md"}
    assert files("--namespace", "default", "--filename", "copies/*") == {"copies/woods.md"}
    assert files("--source", "docs", "--filename", "copies/*") == {"copies/woods.md"}
    assert files("--since", "2200-01-01") == set()
