"""`parquetry calibrate` on generated collections with known right answers."""

import json

import pytest

from parquetry.ranking.relevance_files import parse_calibrations
from tests.servers.rerank_server import RerankServer
from tests.serving.cli.test_eval_command import write
from tests.serving.program import settle

pytestmark = pytest.mark.slow

QUESTIONS = 56
"""searches of a calibration: 8 questions, with and without their answers, and 40 of general knowledge"""
THINGS = [
    "oak table",
    "pine shelf",
    "elm chair",
    "ash ladder",
    "birch stool",
    "walnut desk",
    "maple bench",
    "cedar box",
]
DOCUMENTS = [
    {"_id": thing, "title": "", "text": f"The {thing} costs {90 + n} euros and is delivered in {n + 2} weeks."}
    for n, thing in enumerate(THINGS)
]
QUERIES = [{"_id": thing, "text": f"What does the {thing} cost, and when is it delivered?"} for thing in THINGS]
JUDGED = [(thing, thing, 1) for thing in THINGS]


@pytest.fixture
def dataset(tmp_path):
    write(tmp_path / "joinery", DOCUMENTS, QUERIES, JUDGED)
    return tmp_path / "joinery"


def test_calibration_is_written_where_the_settings_find_it_and_read_by_searches(desk, dataset, tmp_path):
    place = tmp_path / "calibration.json"
    done = desk("calibrate", dataset, "--output", place, "--json")
    assert done.code == 0, done.stderr
    told = done.json
    assert told["file"] == str(place)
    assert told["collections"] == [
        {"name": "joinery", "documents": 8, "answered": 8, "removed": 8, "foreign": told["collections"][0]["foreign"]}
    ]
    assert set(told["held_out"]) == {"hybrid", "vector", "text"}
    for report in told["held_out"].values():
        assert [each["threshold"] for each in report["thresholds"]] == [0.3, 0.5, 0.7]
        assert all(0 <= each["precision"] <= 1 and 0 <= each["kept"] <= 1 for each in report["thresholds"])
        assert 0 <= report["error"] <= 1
    (calibration,) = parse_calibrations(place.read_text(), "calibration.json").values()
    assert (calibration.role, calibration.model) == ("embedder", told["embedder"])
    assert all(weight > 0 for curve in calibration.curves.values() for weight in curve.weights.values())


def test_another_embedder_is_kept_beside_and_the_same_replaced(desk, dataset, tmp_path):
    place = tmp_path / "calibration.json"
    curve = {"intercept": -1.0, "weights": {}}
    other = {"embedder": "other@3", "curves": {"hybrid": curve, "vector": curve, "text": curve}, "measured": {}}
    place.write_text(json.dumps({"format": 1, "calibrations": [other]}))
    for _ in range(2):
        assert desk("calibrate", dataset, "--output", place).code == 0
    calibrations = parse_calibrations(place.read_text(), "calibration.json")
    assert len(calibrations) == 2
    assert calibrations["embedder", "other@3"].curves["vector"].intercept == -1.0


def test_tables_say_what_each_threshold_does(desk, dataset, tmp_path):
    done = desk("calibrate", dataset, "--output", tmp_path / "c.json")
    assert done.code == 0
    for shown in ("hybrid: 8 answered questions", "threshold", "kept", "precision", "predicted", "observed"):
        assert shown in done.stdout


def test_no_place_to_write_and_a_file_of_something_else_are_refused(desk, dataset, tmp_path):
    done = desk("calibrate", dataset)
    assert done.code == 2
    assert "--output FILE" in done.stderr
    place = tmp_path / "notes.json"
    place.write_text("{}")
    done = desk("calibrate", dataset, "--output", place)
    assert done.code == 2
    assert "holds no calibrations" in done.stderr
    assert place.read_text() == "{}"


def squeezed(body):
    """Return scores that are right about the order, and all near one half, as those of some models."""
    return [
        0.58 if any(each in text and each in body["query"] for each in THINGS) else 0.5 for text in body["documents"]
    ]


def test_scores_of_a_reranker_get_the_meaning_that_a_collection_gives_them(desk, dataset):
    settings = desk.folder / "parquetry.toml"
    plain = settings.read_text()
    for thing in DOCUMENTS:
        desk.write(f"{thing['_id']}.md", thing["text"])
    settle(desk)
    with RerankServer("cohere", [squeezed] * (QUESTIONS + 4)) as server:
        service = f'[rerank]\nbase_url = "{server.base_url}"\n[search]\nrerank = "service:m"'
        settings.write_text(f"{plain}\n{service}")
        asked = ("search", QUERIES[1]["text"], "--rerank", "--min-score", 0.5)
        before = desk(*asked, "--json").json
        assert len(before["results"]) > 1
        assert "scores of service:m as they are; `parquetry calibrate --rerank`" in desk(*asked, "--explain").stdout

        done = desk("calibrate", dataset, "--rerank", "--output", desk.folder / "calibration.json", "--json")
        assert done.code == 0, done.stderr
        assert done.json["reranker"] == "service:m"
        assert set(done.json["held_out"]) == {"rerank"}
        settings.write_text(f'{plain}\n{service}\ncalibration = "calibration.json"')
        (found,) = desk(*asked, "--json").json["results"]
        assert found["filename"] == "pine shelf.md"
        assert found["scores"]["rerank"] == pytest.approx(0.58)
        assert found["relevance"] > 0.7
        assert "as they are" not in desk(*asked, "--explain").stdout


def test_without_a_reranker_there_is_none_to_calibrate(desk, dataset, tmp_path):
    done = desk("calibrate", dataset, "--rerank", "--output", tmp_path / "c.json")
    assert done.code == 2
    assert "no reranker is configured" in done.stderr
    assert not (tmp_path / "c.json").exists()
