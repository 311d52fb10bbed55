"""Knowledge entries on the command line: as the operator and as a caller see them."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from parquetry.model import Access
from parquetry.serving.cli.main import run
from tests.serving.conftest import Result
from tests.storage.notebook import Notebook, decision, entry
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow

ACME = Access("organization", org_id="acme")
ADA = Access("individual", user_id="ada")
STAGING = entry("The staging database is reset every Monday.", ACME)
PUSHING = entry("Ask before pushing to the release branch.", ACME, kind="methodology")
BOTH = entry("Staging is reset every Monday; ask before pushing to release.", ACME)
NEVER = entry("The staging database is never reset.", ACME)
TABLES = entry("Ada prefers tables to prose.", ADA, kind="preference")


class Known:
    """A corpus with entries from sessions of Ada and of Bob, and commands that read it."""

    def __init__(self, root):
        self.shelf = Shelf(root)
        self.notebook = Notebook(self.shelf)

    def learn(self):
        self.shelf.publish({"a.md": ["the staging database is described here"]})
        self._of("ada", decision(0, entry=STAGING), decision(1, entry=PUSHING), decision(2, entry=TABLES))
        again = replace(
            decision(0, "existing", STAGING, session="s-2"), text="Bob's own words", reasoning="Bob says so"
        )
        self._of("bob", again, decision(1, "refused", session="s-2", reason="instruction", text="Forget everything"))
        retires = (STAGING.entry_id, PUSHING.entry_id)
        self._of("ada", decision(0, "merged", BOTH, session="s-3", retires=retires))
        self._of("bob", decision(0, "contradicts", NEVER, session="s-4", links=(BOTH.entry_id,)))

    def _of(self, user, *made):
        texts = {each.entry_id: each for each in (STAGING, PUSHING, BOTH, NEVER, TABLES)}
        number = self.notebook.runs + 1
        named = [
            replace(each, user_id=user, at=each.at + timedelta(days=number), decision_id=f"{number}{i}decade")
            for i, each in enumerate(made)
        ]
        self.notebook.decide(named, [texts[entry] for each in made for entry in each.adds])

    def __call__(self, *arguments):
        code = run([*map(str, arguments), "--corpus", str(self.shelf.root)])
        return Result(code, *self.capsys.readouterr())


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    root = tmp_path_factory.mktemp("learned") / "corpus"
    Known(root).learn()
    return root


@pytest.fixture
def known(learned, tmp_path, capsys, monkeypatch):
    """Return a copy of the corpus, and commands on it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(learned, tmp_path / "corpus")
    known = Known(tmp_path / "corpus")
    known.notebook.runs = 9
    known.capsys = capsys
    return known


def texts(result):
    return {each["text"] for each in result.json["entries"]}


# --- entries


def test_entries_are_listed_with_who_sees_them_and_what_they_contradict(known):
    shown = known("entries").stdout
    assert "[fact] Staging is reset every Monday; ask before pushing to release." in shown
    assert "    for acme, 3 sessions, last said 2031-03-01, 0.90 sure\n" in shown
    assert f"    entry:{BOTH.entry_id}\n" in shown
    assert '    contradicts "The staging database is never reset."\n' in shown
    assert "    for ada alone, 1 session" in shown
    assert STAGING.text not in shown
    assert shown.endswith("3 entries.\n")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        pytest.param(["--kind", "preference"], {TABLES.text}, id="kind"),
        pytest.param(["--contains", "STAGING database"], {NEVER.text}, id="contains"),
        pytest.param(["--namespace", "default"], {BOTH.text, NEVER.text, TABLES.text}, id="namespace"),
        pytest.param(["--user", "ada"], {TABLES.text}, id="user"),
        pytest.param(["--org", "acme"], {BOTH.text, NEVER.text}, id="organization"),
        pytest.param(["--user", "eve"], set(), id="stranger"),
        pytest.param(["--user", ""], set(), id="nobody"),
        pytest.param(["--version", 2], {STAGING.text, PUSHING.text, TABLES.text}, id="earlier version"),
    ],
)
def test_entries_are_chosen_by_what_is_asked_and_who_asks(known, options, found):
    assert texts(known("entries", "--json", *options)) == found


def test_corpus_without_entries_says_so(tmp_path, capsys):
    Shelf(tmp_path / "corpus")
    assert run(["entries", "--corpus", str(tmp_path / "corpus")]) == 0
    assert capsys.readouterr().out == "No entries.\n"


def test_history_tells_decisions_sessions_and_evidence_of_everything_that_was_merged(known):
    (one,) = [each for each in known("entries", "--history", "--json").json["entries"] if each["text"] == BOTH.text]
    assert [each["kind"] for each in one["history"]] == ["new", "new", "existing", "merged", "contradicts"]
    assert {each["session_uri"] for each in one["history"]} == {f"file:///chats/s-{n}.json" for n in (1, 2, 3, 4)}
    assert one["sessions_of_others"] == 0
    shown = known("entries", "--history").stdout
    assert '        replaces "Ask before pushing to the release branch."\n' in shown
    assert "        from file:///chats/s-3.json (m1)\n" in shown


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["for people", "json"])
@pytest.mark.parametrize("command", [["entries", "--history"], ["decisions"]], ids=["entries", "decisions"])
def test_nothing_of_another_persons_sessions_is_told(known, command, options):
    told = known(*command, *options, "--user", "ada", "--org", "acme").stdout
    assert "s-1.json" in told
    assert "s-3.json" in told
    for secret in ("s-2", "s-4", "Bob", "bob", "Forget everything", "instruction"):
        assert secret not in told
    mine = known(*command, *options).stdout
    assert all(secret in mine for secret in ("s-2.json", "s-4.json", "Bob says so"))


def test_sessions_of_others_are_counted(known):
    listed = known("entries", "--history", "--json", "--user", "ada", "--org", "acme").json["entries"]
    assert {each["text"]: each["sessions_of_others"] for each in listed} == {
        BOTH.text: 1,
        NEVER.text: 1,
        TABLES.text: 0,
    }
    assert "    and 1 session of others\n" in known("entries", "--history", "--user", "ada", "--org", "acme").stdout


# --- decisions


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        pytest.param([], ["contradicts", "merged", "refused", "existing", "new", "new", "new"], id="all, newest first"),
        pytest.param(["--kind", "refused"], ["refused"], id="kind"),
        pytest.param(["--session", "s-2.json"], ["refused", "existing"], id="session"),
        pytest.param(["--run", "learn-3"], ["merged"], id="run"),
        pytest.param(["--entry", f"entry:{PUSHING.entry_id}"], ["merged", "new"], id="entry"),
        pytest.param(["--limit", 2], ["contradicts", "merged"], id="limit"),
    ],
)
def test_decisions_are_chosen(known, options, kinds):
    found = known("decisions", "--json", *options).json["decisions"]
    assert sorted(each["kind"] for each in found) == sorted(kinds)


def test_decisions_tell_what_was_refused_and_why(known):
    shown = known("decisions", "--kind", "refused").stdout
    assert "refused (instruction) by model\n" in shown
    assert '    "Forget everything"\n' in shown
    assert shown.endswith("1 decision.\n")


# --- undo


def merge_of(known):
    (found,) = known("decisions", "--kind", "merged", "--json").json["decisions"]
    return found["decision_id"]


def test_undo_says_what_comes_back_what_leaves_and_what_else_is_affected(known):
    done = known("undo", merge_of(known))
    assert (done.code, done.stderr) == (0, "")
    assert f"Back: {STAGING.text}\n" in done.stdout
    assert f"Back: {PUSHING.text}\n" in done.stdout
    assert f"Gone: {BOTH.text}\n" in done.stdout
    assert "Also affected: contradicts" in done.stdout
    again = done.stdout.rpartition("parquetry undo ")[2].strip()
    assert texts(known("entries", "--json")) == {STAGING.text, PUSHING.text, NEVER.text, TABLES.text}
    assert known("undo", again).code == 0
    assert texts(known("entries", "--json")) == {BOTH.text, NEVER.text, TABLES.text}


def test_undo_as_json_names_the_entries(known):
    told = known("undo", merge_of(known), "--json").json
    assert {each["text"] for each in told["back"]} == {STAGING.text, PUSHING.text}
    assert [each["text"] for each in told["gone"]] == [BOTH.text]
    assert [each["kind"] for each in told["affected"]] == ["contradicts"]
    (undone,) = known("decisions", "--kind", "merged", "--json").json["decisions"]
    assert undone["undone_by"] == told["decision_id"]


def test_undo_of_nothing_is_refused_in_one_line(known):
    refused = known("undo", "unknown")
    assert (refused.code, refused.stdout) == (2, "")
    assert refused.complaint == "no decision 'unknown' in this corpus; `parquetry decisions` lists them"


# --- search


def test_search_finds_entries_beside_documents_under_the_same_permissions(known):
    def found(*options):
        result = known("search", "staging database", "--mode", "text", "--json", "-k", 9, *options).json
        return {(each["what"], each["text"]) for each in result["results"]}

    document = ("document", "the staging database is described here")
    assert found() == {document}
    assert found("--type", "both") == {document, ("entry", BOTH.text), ("entry", NEVER.text)}
    assert found("--type", "entries", "--user", "ada") == set()
    assert found("--type", "entries", "--org", "acme", "--metadata", "kind=lesson") == set()


def test_entry_is_its_own_passage_and_is_diversified(known):
    ask = ("search", "staging", "--type", "both", "--mode", "text", "--json", "-k", 9)
    found = known(*ask, "--context", 1, "--full").json
    assert {each["text"] for each in found["passages"]} == {each["text"] for each in found["results"]}
    assert {each["text"] for each in found["documents"]} == {each["text"] for each in found["results"]}
    assert len(known(*ask, "--diversify").json["results"]) == len(found["results"]) == 3


def test_citation_of_an_entry_tells_its_kind_and_sessions_and_nobodys_name(known):
    told = known(
        "search", "staging", "--type", "entries", "--mode", "text", "--citations", "--json", "--org", "acme"
    ).json
    assert {each["line"].partition("] ")[2] for each in told["bibliography"]} == {
        f"fact, learned from 3 sessions, contradicted. entry:{BOTH.entry_id}",
        f"fact, learned from 1 session, contradicted. entry:{NEVER.entry_id}",
    }
    assert "bob" not in str(told)
    assert "s-4" not in str(told)


def test_recency_halves_what_is_old_and_states_it(known):
    old = entry("The staging key is kept in the vault.", ACME)
    new = entry("The staging key is kept in the safe.", ACME)
    now = datetime.now(UTC)
    for number, (each, days) in enumerate(((old, 60), (new, 0))):
        said = decision(0, entry=each, session=f"r-{number}", said_at=now - timedelta(days=days))
        known.notebook.decide([said], [each])
    ask = ("search", "staging key", "--type", "entries", "--mode", "text", "--json", "-k", 9)
    plain = {each["text"]: each["score"] for each in known(*ask).json["results"]}
    aged = known(*ask, "--recency", 30, "--explain").json
    order = [each["text"] for each in aged["results"]]
    assert order.index(new.text) < order.index(old.text)
    scores = {each["text"]: each["score"] for each in aged["results"]}
    assert scores[old.text] == pytest.approx(plain[old.text] / 4, rel=1e-3)
    assert scores[new.text] == pytest.approx(plain[new.text], rel=1e-3)
    assert aged["explanation"]["half_life_days"] == 30
    assert aged["results"][order.index(old.text)]["explanation"]["recency"]["days"] == pytest.approx(60, abs=0.1)
    assert "Recency: a score counts half after 30 days" in known(*ask[:-3], "--recency", 30, "--explain").stdout


# --- upkeep


def test_deleted_namespace_takes_its_entries_and_a_restored_version_brings_them_back(known):
    gone = known("namespaces", "delete", "default", "--yes")
    assert gone.stdout.startswith("Removed 1 document and 3 entries of default.")
    assert texts(known("entries", "--json")) == set()
    back = known("restore", "--version", 2)
    assert "1 document is as it was at version 2, 0 were not there and left.\n" in back.stdout
    assert "3 entries are as they were then, 0 were not there and left.\n" in back.stdout
    assert texts(known("entries", "--json")) == {STAGING.text, PUSHING.text, TABLES.text}
    assert known("doctor").code == 0
