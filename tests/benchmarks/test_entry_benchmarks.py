"""The benchmarks of comparing entries count correctly, on small sets in the form of the real ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import entry_candidates, entry_guards
from benchmarks.entry_sets import Pair, clusters, pairs

CLUSTERS = [
    ["Walnut is dried in kiln 3.", "Kiln 3 is where walnut is dried.", "They dry walnut in the third kiln"],
    ["Oak is oiled twice", "Oak gets oil two times"],
    ["The crane stops in frost", "In frost the crane does not move"],
    ["Marta keeps the plans of the harbour"],
    ["Glue is heated in a bath"],
]
MED = [
    ("entailment", "Every crane of the harbour stops.", "Every crane stops."),
    ("neutral", "Three cranes stop.", "Four cranes stop."),
    ("neutral", "The crane stops.", "The crane never stops."),
    ("neutral", "I saw Marta there.", "I saw Ivo there."),
]


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """Write claims 1 to 5 for development, the others for the test; the last claim shares statements with both."""
    folder = tmp_path / "perspectrum"
    folder.mkdir()
    pool: list[dict[str, object]] = []
    claims = []
    for claim, (text, half) in enumerate([("", "train")] * 5 + [(" at night", "test")] * 5, start=1):
        members = [f"{each}{text}" for each in CLUSTERS[(claim - 1) % 5]]
        ids = range(len(pool), len(pool) + len(members))
        pool += [{"pId": id_, "text": member, "source": "idebate"} for id_, member in zip(ids, members, strict=True)]
        claims.append({"cId": claim, "text": "x", "perspectives": [{"pids": list(ids)}], "half": half})
    claims.append({"cId": 11, "text": "x", "perspectives": [{"pids": [0, 5]}], "half": "test"})
    split = {str(claim["cId"]): claim.pop("half") for claim in claims}
    for name, content in (("perspective_pool", pool), ("dataset_split", split), ("perspectrum_with_answers", claims)):
        (folder / f"{name}_v1.0.json").write_text(json.dumps(content), "utf-8")
    (tmp_path / "med-monotonicity").mkdir()
    head = "index\tgenre\tsentence1\tsentence2\tgold_label\n"
    rows = "".join(
        f"{at}\tcrowd:up:lexical_knowledge\t{one}\t{two}\t{label}\n" for at, (label, one, two) in enumerate(MED)
    )
    (tmp_path / "med-monotonicity" / "MED.tsv").write_text(head + rows, "utf-8")
    return tmp_path


def test_statements_come_in_clusters_and_the_halves_share_none(corpora: Path):
    halves = clusters(corpora / "perspectrum")
    assert sorted(map(sorted, halves["development"])) == sorted(map(sorted, CLUSTERS))
    assert [len(each) for each in halves["test"]] == [len(each) for each in halves["development"]]
    assert all(text.endswith(" at night") for cluster in halves["test"] for text in cluster)


def test_pairs_say_whether_one_sentence_says_all_of_the_other(corpora: Path):
    found = pairs(corpora / "med-monotonicity" / "MED.tsv")
    assert found[0] == Pair(MED[0][1], MED[0][2], True, ("lexical_knowledge",))
    assert [each.entails for each in found] == [True, False, False, False]


def test_every_duplicate_is_found_without_a_threshold_and_fewer_with_a_higher_one(corpora: Path, tmp_path: Path):
    result = entry_candidates.main([str(corpora), "--results", str(tmp_path)])
    measured = result["embedders"]["wordllama"]
    for half in ("development", "test"):
        rows = measured[half]["all"]
        assert rows[0]["recall"] == rows[0]["new_compared"] == 1.0
        assert [row["recall"] for row in rows] == sorted((row["recall"] for row in rows), reverse=True)
        assert rows[-1]["recall"] < 0.5
    assert measured["chosen"] in entry_candidates.THRESHOLDS
    assert measured["minimal_pairs"]["pairs"] == len(MED)
    assert json.loads((tmp_path / "entry-candidates.json").read_text("utf-8"))["embedders"] == result["embedders"]


def test_guards_are_counted_by_what_differs(corpora: Path, tmp_path: Path):
    result = entry_guards.main([str(corpora), "--half", "development", "--results", str(tmp_path)])
    generated = result["generated"]["existing"]
    assert generated["identifier"]["different"] == generated["identifier"]["stopped"] == len(CLUSTERS)
    assert generated["unchanged"]["same"] == len(CLUSTERS)
    assert generated["all"]["recall"] > 0.9
    assert generated["all"]["precision"] == 1.0
    assert {kind: (row["stopped"], row["different"]) for kind, row in result["med"].items()} == {
        "number": (1, 1), "negation": (1, 1), "name": (1, 1), "other": (0, 0), "all": (3, 3),
    }  # fmt: skip
    assert result["put_together"]["merges"] == result["paraphrases"]["same"] == 4
