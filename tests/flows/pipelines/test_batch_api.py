"""Documents through a service's batch API, by the real client on a real socket: every text embedded and paid once."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from parquetry.errors import OutageError, RunSuspended
from parquetry.storage.lake.snapshot_views import connect_snapshot
from tests.flows.pipelines.batch_workshop import (
    MOST,
    PRICE,
    TEXTS,
    WORDS,
    age,
    batch_workshop,
    check_all_is_there,
    records,
)
from tests.servers.batch_server import BatchServer
from tests.servers.embedding_server import refusal
from tests.workshop import Workshop

pytestmark = pytest.mark.slow


@pytest.fixture
def server():
    with BatchServer() as server:
        yield server


@pytest.fixture
def workshop(tmp_path, server):
    return batch_workshop(tmp_path, server)


def test_documents_wait_for_their_batch_and_a_later_run_publishes_them(workshop, server):
    first = workshop.refresh()
    assert isinstance(first.error, RunSuspended)
    assert (first.error.exit_code, first.documents.added, first.work.cost_usd, first.costs) == (6, 0, 0.0, ())
    assert first.suspended[0].startswith("6 documents wait for 1 batch of 6 requests, on the way since ")
    assert first.batches == (f"batch 1 sent: 6 texts, at most ${6 * MOST:.4f}",)
    (batch,) = server.batches
    assert workshop.refresh().error.exit_code == 6
    assert server.batches == [batch]

    server.complete()
    second = workshop.refresh()
    tokens = sum(len(text.split()) for text in TEXTS)
    assert (second.error, second.documents.added) == (None, 6)
    assert (second.work.tokens, second.work.cost_usd) == (tokens, pytest.approx(tokens * PRICE / 2e6))
    ((cost),) = second.costs
    assert (cost.source, cost.purpose, cost.tokens) == ("docs", "embed", tokens)
    assert cost.cost_usd == pytest.approx(tokens * PRICE / 2e6)
    assert server.ordinary == []
    check_all_is_there(workshop, server)
    assert server.files == {}, "the service keeps no texts"
    asked = len(server.seen)
    assert workshop.refresh().documents.unchanged == 6
    assert len(server.seen) == asked


def test_vectors_of_a_batch_are_those_of_the_ordinary_way(workshop, server, tmp_path):
    workshop.refresh()
    server.complete()
    workshop.refresh()
    ordinary = Workshop(tmp_path / "ordinary")
    ordinary.sections |= {**workshop.sections, "batch_api": {}}
    for word, text in zip(WORDS, TEXTS, strict=True):
        ordinary.write(f"{word}.md", text)
    ordinary.refresh()

    def stored(shop):
        with connect_snapshot(shop.lake.snapshot()) as connection:
            chunks = connection.execute("SELECT text, tokens, vector FROM chunks ORDER BY text").fetchall()
            documents = connection.execute("SELECT path, tokens FROM documents ORDER BY path").fetchall()
        return chunks, documents

    assert stored(workshop) == stored(ordinary)


def test_run_that_waits_publishes_by_itself(workshop, server):
    workshop.sections["batch_api"] |= {"wait_minutes": 1, "poll_seconds": 0.01}
    server.ends_at_once = True
    report = workshop.refresh()
    assert (report.error, report.documents.added) == (None, 6)
    assert report.batches == (f"batch 1 sent: 6 texts, at most ${6 * MOST:.4f}", "batch 1 completed: 6 texts answered")
    check_all_is_there(workshop, server)


def test_document_that_waits_for_a_part_of_its_vectors_has_each_chunk_once(workshop, server):
    """Both batches of the run store the known chunk: the one before the wait, and the one after it."""
    workshop.sections["batch_api"] |= {"wait_minutes": 1, "poll_seconds": 0.01}
    workshop.sections["chunking"] = {"size": 100, "overlap": 0}
    server.ends_at_once = True
    known, new = "The oak tells of old kings. " * 3, "The elm tells of nobody. " * 3
    workshop.write("one.md", known)
    workshop.refresh()
    workshop.write("both.md", f"{known}\n\n{new}")
    report = workshop.refresh()
    assert (report.documents.added, report.work.chunks_written) == (1, 2)
    with connect_snapshot(workshop.lake.snapshot()) as connection:
        chunks = connection.execute("SELECT text FROM chunks WHERE uri LIKE '%both.md' ORDER BY chunk_index").fetchall()
    assert [text for (text,) in chunks] == [known.strip(), new.strip()]


def test_run_that_has_waited_long_enough_is_suspended(workshop, server):
    workshop.sections["batch_api"] |= {"wait_minutes": 0.001, "poll_seconds": 0.01}
    assert workshop.refresh().error.exit_code == 6
    server.complete()
    workshop.refresh()
    check_all_is_there(workshop, server)


def test_what_needs_no_new_vector_is_published_meanwhile(workshop, server):
    workshop.write("empty.md", "")
    workshop.refresh()
    server.complete()
    workshop.refresh()
    workshop.write("rose.md", "A rose is new.")
    (workshop.folder / "empty.md").unlink()
    workshop.write("oak2.md", TEXTS[0])
    report = workshop.refresh(allow_removals=True)
    assert (report.documents.added, report.documents.removed, report.error.exit_code) == (1, 1, 6)
    assert "oak2.md" in workshop.rows()
    assert "rose.md" not in workshop.rows()


def test_equal_texts_are_sent_once(workshop, server):
    workshop.sections["refresh"] |= {"batch_documents": 1, "workers": 4}
    for number in range(8):
        workshop.write(f"copy{number}.md", TEXTS[0])
    workshop.refresh()
    server.complete()
    assert workshop.refresh().documents.added == 14
    assert server.charged() == Counter(TEXTS)


def test_order_and_duplicates_and_strange_lines_do_not_matter(workshop, server):
    workshop.refresh()
    (batch,) = server.batches
    server.answer(batch)
    wrong = {**batch.output[0], "custom_id": "nobody-asked"}
    again = {**batch.output[2], "response": {**batch.output[1]["response"]}}
    batch.output = [wrong, *batch.output[::-1], again, *batch.output[:2]]
    server.end(batch, "completed")
    batch_file = batch.files["output"]
    server.files[batch_file] += b"no json\n[1]\n\n"
    report = workshop.refresh()
    assert (report.error, report.documents.added) == (None, 6)
    assert report.work.tokens == sum(len(text.split()) for text in TEXTS), "a duplicate is not counted"
    check_all_is_there(workshop, server)
    oak = workshop.search("The oak grows slowly.", mode="vector").hits[0]
    assert oak.row["text"] == "The oak grows slowly."


@pytest.mark.parametrize("end", ["expired", "cancelled"])
def test_what_a_batch_did_before_its_end_is_kept_and_the_rest_is_sent_again(workshop, server, end):
    workshop.refresh()
    (first,) = server.batches
    server.answer(first, 2)
    server.end(first, end)
    report = workshop.refresh()
    assert (report.documents.added, report.error.exit_code) == (2, 6)
    assert report.batches[0] == f"batch 1 {end}: 2 texts answered, 4 not (4 x batch_{end})"
    assert len(server.batches) == 2
    assert len(server.batches[1].lines) == 4
    server.complete()
    assert workshop.refresh().documents.added == 4
    assert server.ordinary == []
    check_all_is_there(workshop, server)


def test_cancelled_batch_without_any_file_is_sent_again(workshop, server):
    workshop.refresh()
    server.batches[0].status = "cancelled"
    workshop.refresh()
    server.complete()
    workshop.refresh()
    check_all_is_there(workshop, server)


def test_requests_that_failed_in_a_batch_go_the_ordinary_way(workshop, server):
    workshop.refresh()
    (batch,) = server.batches
    server.refuses = lambda body: "elm" in body["input"]
    server.answer(batch)
    server.refuses = lambda _: False
    missing = batch.output.pop(3)["custom_id"]
    broken = batch.output[0]["custom_id"]
    batch.output[0]["response"] = {"status_code": 500, "request_id": "r", "body": {"error": {"message": "down"}}}
    server.end(batch, "completed")
    report = workshop.refresh()
    assert (report.error, report.documents.added) == (None, 6)
    assert report.batches == ("batch 1 completed: 3 texts answered, 3 not (1 x 500, 1 x 400)",)
    sent = {line["custom_id"]: line["body"]["input"] for line in batch.lines}
    again = [text for body in server.ordinary for text in body["input"]]
    assert sorted(again) == sorted([sent[missing], sent[broken], TEXTS[1]])


def test_text_that_the_service_refuses_either_way_is_noted_on_its_document(workshop, server):
    server.refuses = lambda body: "elm" in str(body["input"])
    workshop.refresh()
    server.complete()
    report = workshop.refresh()
    assert (report.error, report.documents.added) == (None, 6)
    assert any("elm.md: a chunk has no vector: input-rejected" in warning for warning in report.warnings)
    assert server.charged() == Counter([*(text for text in TEXTS if "elm" not in text), "probe"])


@pytest.mark.parametrize("reply", ["no vector", "wrong length", "nan"])
def test_unusable_vector_of_a_batch_is_bought_the_ordinary_way_or_stops_the_run(workshop, server, reply):
    workshop.refresh()
    (batch,) = server.batches
    server.answer(batch)
    body = batch.output[0]["response"]["body"]
    body["data"][0]["embedding"] = {"no vector": None, "wrong length": [1.0] * 7, "nan": [float("nan")] * 8}[reply]
    server.end(batch, "completed")
    if reply == "wrong length":
        with pytest.raises(Exception, match=r"answers with vectors of 7 numbers where 8 are expected"):
            workshop.refresh()
        return
    report = workshop.refresh()
    assert (report.error, report.documents.added) == (None, 6)
    assert [body["input"] for body in server.ordinary] == [[batch.lines[0]["body"]["input"]]]


def test_batch_that_is_refused_as_a_whole_is_not_bought_the_ordinary_way(workshop, server):
    workshop.refresh()
    server.fail(server.batches[0], "token_limit_exceeded", "Enqueued token limit reached for m")
    report = workshop.refresh()
    assert isinstance(report.error, OutageError)
    assert "batch 1 was refused (token_limit_exceeded: Enqueued token limit reached for m)" in str(report.error)
    assert (server.ordinary, len(server.batches)) == ([], 1)
    assert report.suspended == ("6 documents wait for a batch that is still to be sent; the next run sends it",)
    workshop.sections["batch_api"]["max_tokens"] = 2 * (len(TEXTS[0]) + 8)
    workshop.refresh()
    assert [len(batch.lines) for batch in server.batches] == [6, 2, 2, 2]
    server.complete()
    workshop.refresh()
    check_all_is_there(workshop, server)


def test_line_that_the_service_finds_at_fault_goes_the_ordinary_way(workshop, server):
    workshop.refresh()
    first = server.batches[0]
    server.fail(first, "invalid_request", "This line is wrong", line=2)
    assert workshop.refresh().documents.added == 1
    assert [body["input"] for body in server.ordinary] == [[first.lines[1]["body"]["input"]]]
    workshop.refresh()
    server.complete()
    workshop.refresh()
    check_all_is_there(workshop, server)


@pytest.mark.parametrize(
    ("status", "path", "said"),
    [
        (400, "/v1/batches", 'refuses a batch: 400: not now; batch_api.embedding = "never" goes without'),
        (404, "/v1/files", "answered 404"),
        (401, "/v1/files", "does not let this API key in"),
        (429, "/v1/batches", "rate-limited"),
        (500, "/v1/files", "service-failed"),
    ],
)
def test_submission_that_fails_is_reported_and_a_later_run_sends(workshop, server, status, path, said):
    server.gate = lambda method, at: refusal(status, "not now") if (method, at) == ("POST", path) else None
    report = workshop.refresh()
    assert isinstance(report.error, OutageError)
    assert "batch 1 could not be sent: " in str(report.error)
    assert said in str(report.error)
    assert (report.documents.added, server.batches, server.ordinary) == (0, [], [])
    server.gate = lambda _, __: None
    workshop.refresh()
    server.complete()
    workshop.refresh()
    check_all_is_there(workshop, server)


@pytest.mark.parametrize("started", [True, False])
def test_submission_without_a_clear_answer_is_looked_for_and_not_repeated(workshop, server, started):
    def gate(method, path):
        if method == "POST" and path == "/v1/batches" and not server.batches:
            if started:
                body = {"input_file_id": "file-1", "endpoint": "/v1/embeddings", "completion_window": "24h"}
                name = json.loads(next(Path(workshop.settings.corpus.root, "batches").glob("*claim.json")).read_text())
                server._created({**body, "metadata": {"parquetry": name["name"]}})
            return refusal(500, "lost")
        return None

    server.gate = gate
    report = workshop.refresh()
    if started:
        assert report.error.exit_code == 6, "it was found by its name at once"
    else:
        assert "gave no clear answer; whether it was started is looked up later" in str(report.error)
        assert workshop.refresh().error.exit_code == 6
        age(workshop)
    server.gate = lambda _, __: None
    workshop.refresh()
    assert len(server.batches) == 1
    server.complete()
    workshop.refresh()
    check_all_is_there(workshop, server)


def test_batch_that_cannot_be_asked_about_keeps_its_texts(workshop, server):
    workshop.refresh()
    server.complete()
    server.gate = lambda _, path: refusal(503, "down") if "batch-1" in path else None
    report = workshop.refresh()
    assert "batch 1 cannot be asked about: service-failed" in str(report.error)
    assert server.ordinary == []
    server.gate = lambda _, __: None
    workshop.refresh()
    check_all_is_there(workshop, server)


def test_batch_at_another_address_keeps_its_texts_and_is_given_up_by_hand(workshop, server):
    workshop.refresh()
    with BatchServer() as other:
        workshop.sections["embedding"]["base_url"] = other.url
        report = workshop.refresh()
        assert f"it was sent to {server.url}, and the settings name {other.url}" in str(report.error)
        assert other.seen == []
        found = records(workshop)
        found.drop(found.open()[0], "by-hand", datetime.now(UTC))
        workshop.refresh()
        other.complete()
        workshop.refresh()
        check_all_is_there(workshop, other)
