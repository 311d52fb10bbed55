"""What the page on ranking says is so, and its figures are those that were measured."""

import json
import re

import duckdb
import pytest
from documentation import ROOT, text_of

from knowledge.settings import SearchSettings
from storage.ranking import K1, K3, B
from storage.search import EXACT_CHUNKS
from storage.tokens import MACROS

PAGE = text_of("docs/retrieval.md")
MEASURED = json.loads((ROOT / "benchmarks" / "results" / "retrieval.json").read_text("utf-8"))


def table(header):
    """Rows of the table of the page that has this first line, as lists of cells."""
    body = PAGE.partition(f"| {header} |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()[1:]]
    assert rows, header
    return rows


@pytest.mark.parametrize(("text", "tokens"), table("text | tokens"), ids=lambda cell: cell)
def test_tokens_are_as_the_page_says(text, tokens):
    connection = duckdb.connect()
    for macro in MACROS:
        connection.execute(macro)
    ((found,),) = connection.execute("SELECT tokens($1)", [text.strip("`")]).fetchall()
    assert found == re.findall(r"`([^`]+)`", tokens)


def test_parameters_are_as_the_page_says():
    shipped = SearchSettings()
    assert f"k1 = {K1:g} and b = {B:g}, and k3 = {K3:g}" in " ".join(PAGE.split())
    assert f"Up to {EXACT_CHUNKS:,} chunks every vector is compared" in PAGE
    share = shipped.vector_weight
    assert f"{share:g} of its vector score and {1 - share:g} of its text score" in " ".join(PAGE.split())


def test_figures_are_of_the_settings_that_are_shipped():
    fusing = ("language", "fusion", "vector_weight", "depth")
    shipped = SearchSettings().model_dump()
    assert {key: MEASURED["search_settings"][key] for key in fusing} == {key: shipped[key] for key in fusing}
    assert {key: MEASURED["keywords"][key] for key in ("k1", "b", "k3")} == {"k1": K1, "b": B, "k3": K3}


def test_figures_by_mode_are_those_measured():
    rows = table("collection | documents | queries | vector | text | hybrid")
    modes = MEASURED["modes"]["wordllama"]
    assert [name for name, *_ in rows] == list(modes)
    for name, documents, queries, *figures in rows:
        measured = modes[name]
        assert (documents, queries) == (f"{measured['documents']:,}", str(measured["queries"]))
        assert figures == [f"{measured[mode]['ndcg']:.3f}" for mode in ("vector", "text", "hybrid")]


def test_a_hybrid_is_nowhere_worse_than_the_better_side():
    """What the defaults were chosen for: at most 0.01 below it on any collection, and never below keywords alone."""
    for measured in MEASURED["modes"]["wordllama"].values():
        vector, text, hybrid = (measured[mode]["ndcg"] for mode in ("vector", "text", "hybrid"))
        assert hybrid >= max(vector - 0.01, text)


def test_figures_by_setting_are_those_measured():
    means = {(row["table"], row["setting"]): f"{row['mean']:.3f}" for row in MEASURED["sweep"]}
    for setting, text, hybrid in table("setting | text | hybrid"):
        if setting == "as shipped":
            assert [text, hybrid] == [means["sides", "text"], means["sides", "hybrid"]]
        else:
            assert [text, hybrid] == [means["keywords, text", setting], means["keywords, hybrid", setting]]
    for setting, mean in table("fusion | mean of hybrids"):
        fusion, _, rest = setting.partition(", ")
        assert mean == means[fusion, rest]
