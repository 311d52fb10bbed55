"""One line for each search, and no search lost for the lack of a line."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from serving.search_events import SearchEvent, SearchLog, mean

EVENT = SearchEvent(
    searched_at=datetime(2031, 3, 1, 9, 30, tzinfo=UTC),
    query="größe\nund öl",
    mode="hybrid",
    level="chunk",
    k=5,
    caller=True,
    version=7,
    count=2,
    mean_score=0.75,
    best_score=1.0,
    seconds=0.0123456789,
    cached=False,
)


def test_event_is_one_line_of_json(tmp_path):
    file = tmp_path / "logs" / "searches.jsonl"
    log = SearchLog(str(file))
    log.write(EVENT)
    log.write(replace(EVENT, query="\ud800", count=0, mean_score=None, best_score=None, cached=True))
    first, second = (json.loads(line) for line in file.read_text("utf-8").splitlines())
    assert first == {
        "searched_at": "2031-03-01T09:30:00+00:00",
        "query": "größe\nund öl",
        "mode": "hybrid",
        "level": "chunk",
        "k": 5,
        "caller": True,
        "version": 7,
        "count": 2,
        "mean_score": 0.75,
        "best_score": 1.0,
        "seconds": 0.012346,
        "cached": False,
    }
    assert (second["mean_score"], second["cached"]) == (None, True)
    assert list(EVENT.as_row()) == list(first)


def test_lines_of_many_threads_stay_whole(tmp_path):
    file = tmp_path / "searches.jsonl"
    log = SearchLog(str(file))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: log.write(replace(EVENT, query="x" * 500, k=number)), range(200)))
    assert sorted(json.loads(line)["k"] for line in file.read_text().splitlines()) == list(range(200))


def test_log_that_cannot_be_written_is_told_once(tmp_path, capsys):
    (tmp_path / "taken").write_text("a file where a folder is needed")
    log = SearchLog(str(tmp_path / "taken" / "searches.jsonl"))
    log.write(EVENT)
    log.write(EVENT)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert told.err.startswith("parquetry: searches are not logged: ")


def test_mean_of_nothing_is_none():
    assert (mean([]), mean([0.5, 1.0])) == (None, 0.75)
