"""The batch API at the command line: both prices in the plan, exit code 6, and `parquetry batches`."""

import json
import re

import pytest

from tests.flows.pipelines.test_outages import DOCS, Desk
from tests.servers.batch_server import BatchServer

pytestmark = pytest.mark.slow

CHATS = '[[source]]\nname = "chats"\nuri = "chats"\ncontent = "sessions"\nvisibility = "public"'


@pytest.fixture
def desk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made = Desk(tmp_path, capsys)
    for number in range(3):
        made.write(f"docs/{number}.md", f"Note {number} is about oak, and costs money.")
    chat = {"messages": [{"role": "user", "content": "public/fact: Saw: it runs at 4200 rpm."}]}
    made.write("chats/a.json", json.dumps(chat))
    return made


@pytest.fixture
def server():
    with BatchServer() as server:
        yield server


def use(desk, server, when="always", more=""):
    desk.settings(
        f'[embedding]\nbase_url = "{server.url}"\napi_key = "x"\nattempts = 1\ndimension = 8\n'
        "price_per_million_tokens = 1000",
        f'[batch_api]\nembedding = "{when}"\nsessions = "{when}"\n{more}',
        f'[llm]\nmodel = "m"\nbase_url = "{server.url}"\napi_key = "x"\nattempts = 1\n'
        "price_per_million_input_tokens = 100\nprice_per_million_output_tokens = 100",
        DOCS,
        CHATS,
        embedder="openai:m",
    )


def test_plan_shows_both_prices_and_the_way_and_what_is_on_its_way(desk, server):
    use(desk, server, "never")
    _, printed = desk("plan")
    shown = re.search(r"likely 3 chunks, \d+ tokens, \$([\d.]+) \(\$([\d.]+) through the batch API\)\.", printed.out)
    ordinary, batch = map(float, shown.groups())
    assert batch == pytest.approx(ordinary / 2, abs=1e-4)
    assert "go through the batch API" not in printed.out
    _, printed = desk("plan", "--json")
    planned = json.loads(printed.out)
    assert planned["likely"]["cost_usd_batch"] == pytest.approx(planned["likely"]["cost_usd"] / 2)
    assert planned["estimate"]["cost_usd_batch"] == pytest.approx(planned["estimate"]["cost_usd"] / 2)
    assert (planned["batched"], planned["expected_usd"]) == ([], planned["likely"]["cost_usd"])

    use(desk, server)
    _, printed = desk("plan")
    assert f"Texts for openai:m go through the batch API (batch_api.embedding); likely ${batch:.4f}." in printed.out
    _, printed = desk("plan", "--json")
    planned = json.loads(printed.out)
    assert (planned["batched"], planned["expected_usd"]) == (["openai:m"], planned["likely"]["cost_usd_batch"])
    assert server.seen == []
    desk("refresh", "--direct")
    _, printed = desk("plan")
    assert "On the way, and not bought again: batch 1: 3 texts for openai:m/1@8, sent 20" in printed.out


def test_suspended_refresh_exits_with_6_and_says_what_waits(desk, server):
    use(desk, server)
    code, printed = desk("refresh", "--direct")
    assert code == 6
    assert re.search(r"  batch 1 sent: 3 texts, at most \$\d", printed.out)
    assert "Suspended: 3 documents wait for 1 batch of 3 requests, on the way since 20" in printed.out
    assert desk.runs()[-1][0] == "suspended"
    _, printed = desk("status")
    assert "On the way at the batch API of a service (parquetry batches):\n  1: 3 texts for openai:m/1@8" in printed.out
    _, printed = desk("status", "--json")
    assert [each["requests"] for each in json.loads(printed.out)["batches"]] == [3]
    server.complete()
    code, report = desk.refresh()
    assert (code, report["documents"]["added"], report["suspended"]) == (0, 3, [])
    assert report["batches"] == ["batch 1 completed: 3 texts answered"]
    _, printed = desk("costs", "--json")
    (month,) = json.loads(printed.out)["months"]
    assert month["cost_usd"] == pytest.approx(report["cost_usd"])
    assert [(each["source"], each["purpose"]) for each in month["sources"]] == [("docs", "embed")]
    assert month["estimated_usd"] == pytest.approx(report_estimate(desk))
    code, printed = desk("search", "oak")
    assert (code, printed.out.count("Note")) == (0, 3)


def report_estimate(desk):
    _, printed = desk("sql", "SELECT estimated_usd FROM runs WHERE cost_usd > 0", "--json")
    ((estimated,),) = json.loads(printed.out)["rows"]
    return estimated


def test_suspended_sessions_exit_with_6(desk, server):
    use(desk, server)
    code, printed = desk("sessions", "plan")
    assert code == 0
    assert "Questions go through the batch API (batch_api.sessions), comparisons do not." in printed.out
    assert re.search(r"\$[\d.]+ \(\$[\d.]+ through the batch API\)\.", printed.out)
    code, printed = desk("sessions", "refresh", "--direct")
    assert code == 6
    assert "Suspended: 1 session waits for 1 batch of 1 request, on the way since 20" in printed.out
    server.complete()
    code, printed = desk("sessions", "refresh", "--direct")
    assert code == 0
    assert "batch 1 completed: 1 question answered" in printed.out
    assert "Saw: it runs at 4200 rpm." in printed.out


def test_batches_lists_and_cancels_what_is_on_its_way(desk, server):
    use(desk, server, more="max_requests = 2")
    code, printed = desk("batches")
    assert code == 2
    assert "no corpus at" in printed.err
    desk("refresh", "--direct")
    desk("sessions", "refresh", "--direct")
    code, printed = desk("batches")
    assert code == 0
    assert re.findall(r"^  (\d): (\d \w+) for", printed.out, re.MULTILINE) == [
        ("1", "2 texts"),
        ("2", "1 text"),
        ("3", "1 question"),
    ]
    for number, batch in enumerate(server.batches, start=1):
        code, printed = desk("batches", "--cancel", str(number))
        assert code == 0
        assert f"Batch {number}: cancelling. The next run takes what it has done." in printed.out
        assert batch.status == "cancelling"
        server.answer(batch, 1)
        server.end(batch, "cancelled")
    use(desk, server, "never")
    code, report = desk.refresh()
    assert (code, report["documents"]["added"]) == (0, 3)
    assert sum(len(body["input"]) for body in server.ordinary) == 1
    _, printed = desk("batches", "--json")
    assert [each["purpose"] for each in json.loads(printed.out)["batches"]] == ["distill"]


def test_batch_that_is_given_up_is_bought_again(desk, server):
    use(desk, server)
    desk("refresh", "--direct")
    code, printed = desk("batches", "--drop", "1")
    assert code == 0
    assert printed.out == "Batch 1: given up. The next run buys again what it would have brought.\n"
    _, printed = desk("batches")
    assert printed.out == "Corpus corpus: nothing is on its way at a batch API.\n"
    desk("refresh", "--direct")
    assert len(server.batches) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cancel", "7"], "no batch 7 is on its way; `parquetry batches` lists them"),
        (["--drop", "7"], "no batch 7 is on its way; `parquetry batches` lists them"),
        (["--cancel", "1", "--drop", "1"], "--cancel and --drop exclude each other"),
    ],
)
def test_number_that_is_none_is_one_line_with_exit_code_2(desk, server, options, said):
    use(desk, server)
    desk("refresh", "--direct")
    code, printed = desk("batches", *options)
    assert (code, printed.err) == (2, f"parquetry: {said}\n")


def test_cancelling_at_another_address_is_refused(desk, server):
    use(desk, server)
    desk("refresh", "--direct")
    with BatchServer() as other:
        use(desk, other)
        code, printed = desk("batches", "--cancel", "1")
        assert code == 2
        assert f"batch 1 is for openai:m/1@8 at {server.url}, which the settings do not name" in printed.err
        assert other.seen == []
