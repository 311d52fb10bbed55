"""Each search logs one line, and a failure to log it does not fail the search."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from parquetry.serving.search import search_events
from parquetry.serving.search.search_events import SearchEvent, SearchLog, SearchRecord, mean
from parquetry.serving.search.service import Reader, SearchRequest
from parquetry.settings.sections import override
from parquetry.storage.database import rows
from parquetry.storage.lake.lake import Lake
from parquetry.storage.lake.snapshot_views import connect_snapshot

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


# --- the table


def searches(lake):
    with connect_snapshot(lake.snapshot()) as connection:
        return rows(connection, "SELECT * FROM searches ORDER BY k")


def test_recorded_searches_are_rows_of_the_corpus_in_few_commits(tmp_path, monkeypatch):
    monkeypatch.setattr(search_events, "RECORDED_TOGETHER", 4)
    lake = Lake(str(tmp_path / "corpus"), create=True)
    record = SearchRecord(lake)
    for number in range(6):
        record.write(replace(EVENT, k=number))
    record.flush()
    record.flush()
    found = searches(lake)
    assert [row["k"] for row in found] == list(range(6))
    assert found[5] == {**EVENT.as_row(), "k": 5}
    assert len(lake.snapshot().files["searches"]) == 2


def test_corpus_of_before_the_table_is_read_and_gets_it_with_the_first_record(tmp_path):
    lake = Lake(str(tmp_path / "corpus"), create=True)
    shutil.rmtree(lake.layout.table("searches"))
    assert searches(lake) == []
    record = SearchRecord(Lake(str(tmp_path / "corpus")))
    record.write(EVENT)
    record.flush()
    assert len(searches(lake)) == 1


def test_record_that_cannot_be_written_is_told_once(tmp_path, capsys):
    lake = Lake(str(tmp_path / "corpus"), create=True)
    shutil.rmtree(lake.layout.table("searches"))
    (tmp_path / "corpus" / "searches").write_text("a file where a folder is needed")
    record = SearchRecord(lake)
    for _ in range(2):
        record.write(EVENT)
        record.flush()
    (line,) = capsys.readouterr().err.splitlines()
    assert "searches could not be recorded" in line


def test_reader_records_what_the_settings_ask_for(workshop):
    workshop.write("a.md", "The oak table has four legs.")
    workshop.refresh()
    settings = override(workshop.settings, {"search": {"record_searches": True}})
    with closing(Reader(settings)) as reader:
        reader.search(SearchRequest("oak table"))
        reader.search(SearchRequest("oak table"))
    found = searches(Lake(settings.corpus.root))
    assert [(row["query"], row["count"], row["version"], row["caller"]) for row in found] == [
        ("oak table", 1, 1, False),
        ("oak table", 1, 1, False),
    ]
    assert sorted(row["cached"] for row in found) == [False, True]
