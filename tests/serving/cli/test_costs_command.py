"""`parquetry costs`: what the runs of each month cost, by source, and what their plans expected."""

import _thread
import json
from datetime import UTC, datetime

import pytest

from tests.flows.pipelines.test_budget import PRICE, counting
from tests.flows.pipelines.test_outages import DOCS, Desk
from tests.servers.embedding_server import EmbeddingServer, Reply

pytestmark = pytest.mark.slow

WEB = '[[source]]\nname = "web"\nuri = "web"\nnamespace = "other"'


@pytest.fixture
def desk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "web").mkdir()
    return Desk(tmp_path, capsys)


def paid(desk, server, price=f"price_per_million_tokens = {PRICE}", refresh="workers = 1", template="{text}"):
    embedding = f'[embedding]\nbase_url = "{server.url}"\napi_key = "x"\nattempts = 1\ndimension = 8\n'
    desk.settings(f'{embedding}{price}\ntemplate = "{template}"', DOCS, WEB, embedder="openai:m", refresh=refresh)


def shown(desk, *options):
    code, printed = desk("costs", "--json", *options)
    assert code == 0
    return json.loads(printed.out)


def billed(text):
    return pytest.approx(len(text.encode()) * PRICE / 1e6)


def test_each_source_has_what_was_paid_for_its_documents(desk):
    one, two, same = "Oak costs 640 euros.", "Elm is not for sale, nor is yew.", "Kilns are dry."
    desk.write("docs/one.md", one)
    desk.write("docs/same.md", same)
    desk.write("web/two.md", two)
    desk.write("web/same.md", same)
    with EmbeddingServer(counting) as server:
        paid(desk, server)
        code, _ = desk.refresh()
        assert code == 0
        # The text that both have is embedded once, and paid by one of them.
        texts = [text for request in server.requests for text in request.inputs]
        assert sorted(texts) == sorted([one, two, same])
    (month,) = shown(desk)["months"]
    assert month["month"] == f"{datetime.now(UTC):%Y-%m}"
    costs = {each["source"]: each["cost_usd"] for each in month["sources"]}
    alone = {"docs": len(one.encode()), "web": len(two.encode())}
    both = len(same.encode())
    paid_for = {source: round(cost * 1e6 / PRICE) for source, cost in costs.items()}
    assert paid_for in [{source: size + both * (source == payer) for source, size in alone.items()} for payer in alone]
    assert month["cost_usd"] == billed(one + two + same)
    assert {each["purpose"] for each in month["sources"]} == {"embed"}
    assert month["estimated_usd"] is not None


def test_runs_are_told_with_what_their_plans_expected(desk):
    desk.write("docs/one.md", "Oak costs 640 euros.")
    with EmbeddingServer(counting) as server:
        paid(desk, server)
        _, printed = desk("plan", "--json")
        likely = json.loads(printed.out)["likely"]["cost_usd"]
        _, report = desk.refresh()
        desk.refresh()
    (run,) = shown(desk, "--runs")["runs"]
    assert (run["run_id"], run["estimated_usd"], run["cost_usd"]) == (report["run_id"], likely, report["cost_usd"])
    _, printed = desk("costs", "--runs")
    assert f"${report['cost_usd']:.4f}" in printed.out
    assert f"${likely:.4f}" in printed.out


def test_table_of_months(desk):
    desk.write("docs/one.md", "Oak costs 640 euros.")
    with EmbeddingServer(counting) as server:
        paid(desk, server)
        desk.refresh()
    _, printed = desk("costs")
    lines = printed.out.splitlines()
    assert lines[0].split() == ["month", "source", "for", "tokens", "cost", "expected"]
    assert lines[2].split()[:3] == [f"{datetime.now(UTC):%Y-%m}", "total", "20"]
    assert lines[3].split() == ["default/docs", "embed", "20", "$0.0200"]


def test_unknown_price_is_no_number(desk):
    desk.write("docs/one.md", "Oak costs 640 euros.")
    with EmbeddingServer(counting) as server:
        paid(desk, server, price="")
        desk.refresh()
    (month,) = shown(desk)["months"]
    assert (month["tokens"], month["cost_usd"], month["estimated_usd"]) == (20, None, None)
    _, printed = desk("costs")
    assert printed.out.count("unknown") == 3


def test_run_that_fails_after_it_has_paid_is_counted(desk):
    """The request that fails is not the first: vectors that were bought are kept, and so is what they cost."""
    desk.write("docs/one.md", "Oak costs 640 euros.")
    desk.write("web/two.md", "Elm is not for sale.")

    def once(request):
        return counting(request) if request.inputs == ["Oak costs 640 euros."] else Reply(500, b"down")

    with EmbeddingServer(once) as server:
        paid(desk, server, refresh="workers = 1\nbatch_bytes = 1")
        code, printed = desk("refresh", "--direct")
    assert code == 4, printed
    (month,) = shown(desk)["months"]
    assert month["cost_usd"] == billed("Oak costs 640 euros.")


def test_interrupted_run_is_counted_with_what_it_has_paid(desk):
    desk.write("docs/one.md", "Oak costs 640 euros.")
    desk.write("web/two.md", "Elm is not for sale.")
    bought = []

    def then_stopped(request):
        if bought:
            _thread.interrupt_main()
            return Reply(500, b"down")
        bought.extend(request.inputs)
        return counting(request)

    with EmbeddingServer(then_stopped) as server:
        paid(desk, server, refresh="workers = 1\nbatch_bytes = 1")
        code, _ = desk("refresh", "--direct")
    assert code == 130
    (text,) = bought
    (run,) = shown(desk, "--runs")["runs"]
    assert (run["status"], run["tokens"], run["cost_usd"]) == ("failed", len(text), billed(text))
    assert shown(desk)["months"][0]["estimated_usd"] is None


def test_corpus_without_paid_runs_says_so(desk):
    desk.settings(DOCS)
    desk.write("docs/empty.md", "")
    desk.refresh()
    assert desk("costs")[1].out == "No run used a model.\n"


@pytest.mark.parametrize("command", [("refresh", "--direct"), ("reindex", "--all", "--direct")])
def test_budget_of_one_run(desk, command):
    desk.write("docs/one.md", "Oak costs 640 euros.")
    with EmbeddingServer(counting) as server:
        paid(desk, server)
        if command[0] == "reindex":
            desk.refresh()
            paid(desk, server, template="Again: {text}")
        before = len(server.requests)
        code, printed = desk(*command, "--budget", "0.000001")
        assert (code, len(server.requests)) == (3, before)
        assert "more than the budget of $1e-06 (refresh.budget_usd); nothing was spent" in printed.err
        assert desk(*command, "--budget", "1")[0] == 0
        assert len(server.requests) > before


def test_plan_tells_new_from_changed_by_source_and_what_is_a_guess(desk):
    desk.write("docs/one.md", "Oak costs 640 euros.")
    with EmbeddingServer(counting) as server:
        paid(desk, server)
        guess = "a guess for 1 document of kinds that the corpus does not hold yet."
        assert guess in desk("plan")[1].out, "the first plan is the least sure"
        desk.refresh()
        desk.write("docs/one.md", "Oak costs 650 euros now.")
        desk.write("docs/three.md", "Ash is out.")
        desk.write("web/four.txt", "Fir is cheap.")
        _, printed = desk("plan", "--json")
        docs, web = json.loads(printed.out)["sources"]
        assert (docs["source"], docs["new"]["documents"], docs["changed"]["documents"]) == ("docs", 1, 1)
        assert (docs["assumed"], web["assumed"]) == (0, 1)
        assert (web["namespace"], web["new"]["documents"], web["changed"]["documents"]) == ("other", 1, 0)
        assert web["at_most"]["cost_usd"] >= web["new"]["cost_usd"] > 0
        _, printed = desk("plan")
    assert "Source docs: 1 new document, likely 1 chunk, " in printed.out
    assert "; 1 changed document, likely 1 chunk, " in printed.out
    assert printed.out.count(guess) == 1


def test_plan_of_a_free_model_tells_no_costs_by_source(desk):
    desk.settings(DOCS, WEB)
    desk.write("docs/one.md", "Oak costs 640 euros.")
    desk.write("web/two.md", "Elm is not for sale.")
    _, printed = desk("plan")
    assert printed.out.count("Source docs:") == printed.out.count("Source web:") == 1


def test_plan_names_the_price_its_day_and_its_place(desk):
    desk.write("docs/one.md", "Oak costs 640 euros.")
    with EmbeddingServer(counting) as server:
        paid(desk, server, price='prices = [{model = "m", usd_per_million_tokens = 2.5, as_of = 2026-07-03}]')
        _, printed = desk("plan", "--json")
        (price,) = json.loads(printed.out)["prices"]
        assert price == {
            "embedder": "openai:m",
            "usd_per_million_tokens": 2.5,
            "as_of": "2026-07-03",
            "source": "embedding.prices",
        }
        _, printed = desk("plan")
        assert "Price of openai:m: $2.5 per million tokens (embedding.prices, 2026-07-03)." in printed.out
        desk.refresh()
        assert server.requests
    assert shown(desk)["months"][0]["cost_usd"] == pytest.approx(20 * 2.5 / 1e6)
