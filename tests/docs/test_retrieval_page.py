"""The claims of the page on ranking are true, and its figures are the measured ones."""

import json
import re

import duckdb
import pytest

from benchmarks.retrieval_page import refreshed, tables
from parquetry.settings.sections import SearchSettings
from parquetry.storage.index.ranking import K1, K3, B
from parquetry.storage.index.tokens import HEADING_EXTRA, MACROS
from parquetry.storage.search.visible_index import EXACT_CHUNKS
from tests.documentation import ROOT, text_of

PAGE = text_of("docs/retrieval.md")
PROSE = " ".join(PAGE.split())
MEASURED = json.loads((ROOT / "benchmarks" / "results" / "retrieval.json").read_text("utf-8"))
TOKENS = PAGE.partition("| text | tokens |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()


@pytest.mark.parametrize("row", TOKENS)
def test_tokens_are_as_the_page_says(row):
    text, tokens = (re.findall(r"`([^`]+)`", cell) for cell in row.strip("|").split("|"))
    connection = duckdb.connect()
    for macro in MACROS:
        connection.execute(macro)
    ((found,),) = connection.execute("SELECT tokens($1)", text).fetchall()
    assert found == tokens


def test_parameters_are_as_the_page_says():
    shipped = SearchSettings()
    share = shipped.vector_weight
    assert f"k1 = {K1:g} and b = {B:g}, and k3 = {K3:g}" in PROSE
    assert f"Each of their words counts {HEADING_EXTRA} times more than it occurs" in PROSE
    assert f"Up to {EXACT_CHUNKS:,} chunks every vector is compared" in PROSE
    assert f"{share:g} of its vector score and {1 - share:g} of its text score" in PROSE


def test_figures_are_of_the_settings_that_are_shipped():
    fusing = ("language", "fusion", "vector_weight", "depth")
    shipped = SearchSettings().model_dump()
    assert {key: MEASURED["search_settings"][key] for key in fusing} == {key: shipped[key] for key in fusing}
    assert {key: MEASURED["keywords"][key] for key in ("k1", "b", "k3")} == {"k1": K1, "b": B, "k3": K3}
    assert MEASURED["keywords"]["headings"] == HEADING_EXTRA


def test_figures_of_the_page_are_those_measured():
    assert all(f"\n{header}\n" in PAGE for header in tables(MEASURED))
    assert refreshed(PAGE, MEASURED) == PAGE


def result(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))


def test_figures_of_the_larger_embedder_are_those_measured():
    """The figures appear in the text for vector and hybrid, in the order of the collections."""
    measured = result("retrieval-minilm")["modes"]["onnx:all-MiniLM-L6-v2"]
    (line,) = re.findall(r"with all-MiniLM-L6-v2 .*? on tau2\.", PROSE)
    told = [float(figure) for figure in re.findall(r"0\.\d+", line)]
    assert told == [round(measured[name][mode]["ndcg"], 3) for name in measured for mode in ("vector", "hybrid")]


def test_figures_of_another_weight_are_those_measured():
    rows = {(row["table"], row["setting"]): row["ndcg"] for row in result("retrieval-minilm")["sweep"]}
    cranfield, vaswani, tau2 = (f"{ndcg:.3f}" for ndcg in rows["convex", "weight 0.4, depth 100"].values())
    assert (
        f"`vector_weight = 0.4` finds more for the short questions of the abstracts ({cranfield} and {vaswani})"
        in PROSE
    )
    assert f"and less for the long descriptions ({tau2})" in PROSE


def test_figures_of_the_usual_combination_are_those_measured():
    cranfield, vaswani, tau2 = (f"{sides['hybrid']:.3f}" for sides in result("retrieval-peer")["ndcg"].values())
    assert f"fused by reciprocal ranks, has {cranfield}, {vaswani} and {tau2} on the same collections" in PROSE


def test_other_measurements_would_change_the_page():
    other = json.loads(json.dumps(MEASURED))
    other["modes"]["wordllama"]["cranfield"]["text"]["ndcg"] = 0.5
    for row in other["sweep"]:
        row["mean"] = 0.25
    changed = [
        (before, after)
        for before, after in zip(PAGE.split("\n"), refreshed(PAGE, other).split("\n"), strict=True)
        if before != after
    ]
    assert next(after for before, after in changed if before.startswith("| cranfield |")).split(" | ")[-2] == "0.500"
    assert [after for before, after in changed if before.startswith("| no stems |")] == ["| no stems | 0.250 | 0.250 |"]


def test_a_hybrid_is_nowhere_worse_than_the_better_side():
    """Purpose of the defaults: at most 0.01 below it on any collection, and never below keywords alone."""
    for measured in MEASURED["modes"]["wordllama"].values():
        vector, text, hybrid = (measured[mode]["ndcg"] for mode in ("vector", "text", "hybrid"))
        assert hybrid >= max(vector - 0.01, text)
