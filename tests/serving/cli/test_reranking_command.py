"""`parquetry search --rerank` and `--diversify`, from the settings file to the output."""

import json
from dataclasses import replace

import pytest

from parquetry.serving.search.reranking import Reranking
from parquetry.serving.search.service import SearchRequest
from parquetry.settings.sections import override
from tests.rerank.tiny_cross_encoder import build_folder, probability
from tests.servers.chat_server import ChatServer, said
from tests.serving.program import settle

pytestmark = pytest.mark.slow

TEXTS = {
    "a.md": "walnut lunch walnut lunch",
    "b.md": "walnut walnut walnut menu",
    "c.md": "dry dry dry kiln",
    "d.md": "walnut kiln",
    "e.md": "menu lunch menu",
    "f.md": "the dry walnut",
    "g.md": "walnut lunch walnut lunch",
}


@pytest.fixture
def kilns(desk):
    """Refresh small texts of words that the tiny cross-encoder knows."""
    for path in ("leave.md", "oak.txt", "sub/leave.md", "sub/it's [odd].txt", "empty.txt", "broken.docx"):
        (desk.folder / "docs" / path).unlink()
    for path, text in TEXTS.items():
        desk.write(path, text)
    settle(desk)
    return desk


def configure(desk, rerank, *lines):
    settings = desk.folder / "parquetry.toml"
    settings.write_text("\n".join([settings.read_text(), "[search]", f'rerank = "{rerank}"', *lines]))


def results(desk, *arguments):
    told = desk("search", *arguments, "--json")
    assert (told.code, told.stderr) == (0, "")
    return told.json["results"]


def test_a_cross_encoder_of_the_settings_ranks_three_candidates_for_each_result(kilns):
    """The folder is given relative to the settings file."""
    build_folder(kilns.folder / "models" / "tiny")
    plain = results(kilns, "walnut", "-k", 6)
    configure(kilns, "onnx:models/tiny")
    found = results(kilns, "walnut", "-k", 2, "--rerank")
    candidates = sorted(plain, key=lambda each: -probability("walnut", each["text"].replace("the", "[UNK]")))
    assert [each["filename"] for each in found] == [each["filename"] for each in candidates[:2]]
    assert found != plain[:2]
    for each in found:
        assert (
            each["score"]
            == each["scores"]["rerank"]
            == pytest.approx(probability("walnut", each["text"].replace("the", "[UNK]")), abs=1e-5)
        )
        assert each["scores"]["vector"] is not None


def test_without_the_option_nothing_is_reranked(kilns):
    configure(kilns, "onnx:models/missing")
    assert all(each["scores"]["rerank"] is None for each in results(kilns, "walnut"))


def test_least_score_and_documents_go_by_the_new_score(kilns):
    build_folder(kilns.folder / "tiny")
    configure(kilns, "onnx:tiny")
    found = results(kilns, "walnut", "-k", 9, "--rerank", "--level", "document", "--min-score", 0.5)
    assert found
    assert all(each["score"] >= 0.5 for each in found)
    assert "e.md" not in [each["filename"] for each in found]


def test_the_language_model_is_asked_once_for_a_search(kilns):
    judged = [{"n": n, "score": round(n / 10, 1)} for n in range(1, 7)]
    with ChatServer([said(json.dumps({"ranking": judged}))]) as server:
        configure(kilns, "llm", "[llm]", 'model = "m"', f'base_url = "{server.url}"')
        found = results(kilns, "walnut", "-k", 2, "--rerank")
    assert [each["score"] for each in found] == [0.6, 0.5]
    assert len(json.loads(server.bodies[0]["messages"][1]["content"])["passages"]) == 6


def test_explanation_tells_what_reranking_took(kilns):
    judged = [{"n": n, "score": 0.5} for n in range(1, 7)]
    said_so = said(json.dumps({"ranking": judged}), tokens=(800, 20))
    with ChatServer([said_so, said_so]) as server:
        model = [f'base_url = "{server.url}"', "price_per_million_input_tokens = 10"]
        configure(kilns, "llm", "[llm]", 'model = "m"', *model, "price_per_million_output_tokens = 100")
        told = kilns("search", "walnut", "-k", 2, "--rerank", "--explain", "--json").json
        shown = kilns("search", "walnut", "-k", 2, "--rerank", "--explain").stdout
    assert told["explanation"]["rerank"] == {
        "by": "llm:m",
        "candidates": 6,
        "calls": 1,
        "tokens": 820,
        "cost_usd": 0.01,
    }
    assert "Reranked: 6 candidates by llm:m, 1 call, 820 tokens, $0.010000." in shown.splitlines()


def test_answer_from_the_cache_cost_nothing(kilns):
    """The second of two equal queries costs nothing. Without a price in the settings no cost is shown."""
    judged = [{"n": n, "score": 0.5} for n in range(1, 7)]
    (kilns.folder / "queries").write_text("walnut\nwalnut\n")
    with ChatServer([said(json.dumps({"ranking": judged}), tokens=(800, 20))]) as server:
        configure(kilns, "llm", "[llm]", 'model = "m"', f'base_url = "{server.url}"')
        shown = kilns("search", "--queries", "queries", "-k", 2, "--rerank", "--explain").stdout.splitlines()
    told = [line for line in shown if line.startswith("Reranked")]
    assert told == [
        "Reranked: 6 candidates by llm:m, 1 call, 820 tokens.",
        "Reranked: 6 candidates by llm:m.",
    ]


def test_reranking_on_this_machine_tells_no_cost(kilns):
    build_folder(kilns.folder / "models" / "tiny")
    configure(kilns, "onnx:models/tiny")
    shown = kilns("search", "walnut", "-k", 2, "--rerank", "--explain").stdout
    assert "Reranked: 6 candidates by onnx:tiny." in shown.splitlines()


@pytest.mark.parametrize(
    ("rerank", "message"),
    [
        (None, "no reranker is configured: set rerank in [search]"),
        ("onnx:models/missing", "models/missing, which does not exist"),
        ("llm", "no language model is configured: set model in [llm]"),
    ],
)
def test_what_a_reranker_lacks_is_one_line(kilns, rerank, message):
    if rerank:
        configure(kilns, rerank)
    told = kilns("search", "walnut", "--rerank")
    assert (told.code, told.stdout) == (2, "")
    assert message in told.complaint


def test_diversified_results_say_the_same_thing_once(kilns):
    """Two documents are equal; if duplicates are requested, both rank among the best."""
    asked = ("walnut lunch", "-k", 2, "--mode", "vector", "--duplicates")
    plain = [each["text"] for each in results(kilns, *asked)]
    assert plain == ["walnut lunch walnut lunch"] * 2
    found = results(kilns, *asked, "--diversify")
    assert found[0]["text"] == plain[0] != found[1]["text"]


def test_explanation_tells_the_time_of_the_second_look(kilns):
    told = kilns("search", "walnut", "--diversify", "--explain", "--json").json
    assert "second look" in json.dumps(told["explanation"])


def test_an_answer_without_a_second_look_is_not_taken_for_one_with_it(workshop):
    workshop.write("a.md", "walnut kiln")
    workshop.refresh()
    reader = workshop.reader()
    plain = SearchRequest("walnut")
    assert not reader.search(plain).cached
    assert not reader.search(replace(plain, look=Reranking(diversify=True))).cached
    assert reader.search(replace(plain, look=Reranking(diversify=True))).cached


def test_another_language_model_gives_another_answer(workshop):
    """Readers with different settings may share the cache."""
    from parquetry.serving.search.answer_cache import AnswerCache
    from parquetry.serving.search.service import Reader

    workshop.write("a.md", "walnut kiln")
    workshop.refresh()
    cache, asked = AnswerCache(8), SearchRequest("walnut", look=Reranking(rerank=True))
    with ChatServer(
        [said('{"ranking": [{"n": 1, "score": 0.2}]}'), said('{"ranking": [{"n": 1, "score": 0.9}]}')]
    ) as server:
        for model, score in (("small", 0.2), ("large", 0.9)):
            changed = {"search": {"rerank": "llm"}, "llm": {"model": model, "base_url": server.url}}
            reader = Reader(override(workshop.settings, changed), cache=cache)
            assert reader.search(asked).hits[0].score == pytest.approx(score)
            reader.close()
