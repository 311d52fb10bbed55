"""The commands about chat sessions: their output and their refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from parquetry.model import Access
from parquetry.serving.cli.commands import application
from parquetry.serving.cli.session_output import ask_about
from parquetry.sessions.merge.effects import MergeProposal
from tests.servers import session_model
from tests.servers.chat_server import ChatServer, said
from tests.sessions_shelf import Shelf

pytestmark = pytest.mark.slow

FACT = "Glue bench: it needs 12 hours to dry."


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(session_model.answer) as server:
        yield server


@pytest.fixture
def shelf(tmp_path, server, monkeypatch) -> Shelf:
    shelf = Shelf(tmp_path, server.url)
    shelf.write("a.json", [f"organization/fact: {FACT}", "hello"])
    (tmp_path / "parquetry.toml").write_text(f'[llm]\nmodel = "m"\nbase_url = "{server.url}"\n')
    monkeypatch.chdir(tmp_path)
    return shelf


def run(*arguments: str, answer: str | None = None):
    return CliRunner().invoke(application(), ["sessions", *arguments], input=answer)


def test_plan_tells_what_is_new_and_that_no_price_is_known(shelf):
    done = run("plan", str(shelf.folder), "--user", "ada")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[:2] == ["1 session: 1 new.", f"  new {(shelf.folder / 'a.json').as_uri()}"]
    assert "1 window to read: about" in done.stdout
    assert "no price is set in [llm]" in done.stdout
    assert not (shelf.root / "corpus").exists()


def test_plan_names_the_price_that_it_counts_with_and_its_day(tmp_path, shelf):
    with (tmp_path / "parquetry.toml").open("a") as settings:
        settings.write(
            '[[llm.prices]]\nmodel = "m"\nusd_per_million_input_tokens = 1000\n'
            "usd_per_million_output_tokens = 2000\nas_of = 2026-07-03\n"
        )
    done = run("plan", str(shelf.folder), "--user", "ada")
    assert "Price of m: $1000 per million tokens read, $2000 written, 2026-07-03." in done.stdout
    estimate = json.loads(run("plan", str(shelf.folder), "--user", "ada", "--json").stdout)["estimate"]
    assert (estimate["price"]["model"], estimate["price"]["as_of"]) == ("m", "2026-07-03")
    expected = (estimate["input_tokens"] * 1000 + estimate["output_tokens"] * 2000) / 1e6
    assert estimate["cost_usd"] == pytest.approx(expected)
    assert estimate["cost_usd"] > 1


def test_refresh_tells_what_was_learned_and_then_that_nothing_is_new(shelf):
    options = ("--direct", "--user", "ada", "--org", "acme", "--max-visibility", "organization")
    done = run("refresh", str(shelf.folder), *options)
    assert done.exit_code == 0, done.output
    assert "1 new." in done.stdout
    assert f"  + [acme] {FACT} (" in done.stdout
    assert "published version 1." in done.stdout
    again = json.loads(run("refresh", str(shelf.folder), *options, "--json").stdout)
    assert (again["version"], again["sessions"]["unchanged"], again["calls"]) == (1, 1, 0)


def test_learned_without_an_index_has_its_own_exit_code(tmp_path, shelf):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder is needed")
    with (tmp_path / "parquetry.toml").open("a") as settings:
        settings.write(f'[search]\nindex_folder = "{blocked}"\n')
    command = ("refresh", str(shelf.folder), "--direct", "--user", "ada")
    done = run(*command)
    assert done.exit_code == 5
    assert "published version 1, but its search index is not written: " in done.stdout
    assert shelf.live() == [FACT]
    again = run(*command, "--json")
    assert (again.exit_code, str(blocked) in json.loads(again.stdout)["index_error"]) == (5, True)
    blocked.unlink()
    assert run(*command).exit_code == 0


def test_quarantined_part_is_told_with_how_to_ask_again_and_learned_from_then(tmp_path, shelf):
    config = tmp_path / "parquetry.toml"
    place = [str(shelf.folder), "--direct", "--user", "ada"]
    with ChatServer(lambda _: said("I would rather not.")) as useless:
        config.write_text(f'[llm]\nmodel = "m"\nbase_url = "{useless.url}"\n')
        told = run("refresh", *place).stdout.splitlines()
    assert "  1 x bad-reply" in told
    assert "  what is quarantined is asked about again with: parquetry sessions refresh --retry-quarantined" in told
    config.write_text(f'[llm]\nmodel = "m"\nbase_url = "{shelf.url}"\n')
    plan = run("plan", str(shelf.folder), "--user", "ada", "--retry-quarantined").stdout.splitlines()
    assert plan[:2] == ["1 session: 1 retried.", f"  retried {(shelf.folder / 'a.json').as_uri()}"]
    assert "1 new" in run("refresh", *place, "--retry-quarantined").stdout
    assert shelf.live() == [FACT]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("refresh",), 'no source with content = "sessions" is configured'),
        (("refresh", "chats", "--max-visibility", "organization"), "needs --org"),
        (("refresh", "chats", "--max-visibility", "individual"), "needs --user"),
        (("refresh", "chats", "--review"), "no terminal to answer"),
        (("plan", "elsewhere"), "neither a folder or file nor the name of a source"),
    ],
    ids=[
        "no-source",
        "organization-without-its-name",
        "individual-without-a-name",
        "nobody-to-answer",
        "no-such-place",
    ],
)
def test_wrong_use_is_refused_before_anything_is_made(shelf, arguments, message):
    done = run(*arguments)
    assert message in str(done.exception)
    assert not (shelf.root / "corpus").exists()


def test_run_without_a_language_model_makes_no_corpus(shelf):
    (shelf.root / "parquetry.toml").write_text("")
    done = run("refresh", str(shelf.folder), "--direct", "--user", "ada")
    assert "no language model is configured" in str(done.exception)
    assert not (shelf.root / "corpus").exists()


@pytest.mark.parametrize(("said", "agreed"), [("y\n", True), ("\n", True), ("n\n", False)], ids=["yes", "enter", "no"])
def test_merge_is_shown_in_full_and_asked_about(said, agreed):
    proposal = MergeProposal(
        "k1",
        "file:///chats/a.json",
        "It is closed.",
        ("It is dry.",),
        "It is dry. It is closed.",
        "why",
        "default",
        Access(),
        None,
    )
    asked = typer.Typer()

    @asked.command()
    def ask() -> None:
        typer.echo(f"agreed: {ask_about(proposal, 1, 2)}")

    done = CliRunner().invoke(asked, [], input=said)
    for shown in ("Merge 1 of 2", *proposal.replaced, proposal.learned, proposal.merged, "why"):
        assert shown in done.stdout
    assert f"agreed: {agreed}" in done.stdout
