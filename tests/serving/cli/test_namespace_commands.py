"""Namespaces of a corpus are listed and deleted; exports contain only what their recipients may see."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving.program import found, settle

pytestmark = pytest.mark.slow


@pytest.fixture
def parted(desk):
    """Create a corpus of two namespaces: `default`, and `hr` of an organization."""
    (desk.folder / "hr").mkdir()
    page = "The payroll is run on Fridays; the oak table is paid for.\n\n" + "Plain words follow. " * 150
    (desk.folder / "hr" / "pay.md").write_text(page)
    with (desk.folder / "parquetry.toml").open("a") as settings:
        settings.write(
            '[[source]]\nname = "staff"\nuri = "hr"\nnamespace = "hr"\nvisibility = "organization"\norg_id = "acme"\n'
        )
    settle(desk)
    return desk


def test_namespaces_are_listed_with_what_they_hold(parted):
    told = parted("namespaces", "--json").json
    default, hr = told["namespaces"]
    ((chunks,),) = parted("sql", "SELECT count(*) FROM chunks WHERE namespace = 'hr'", "--json").json["rows"]
    assert told["version"] == 3
    assert (default["namespace"], default["documents"], default["indexed"], default["public"]) == ("default", 6, 4, 6)
    assert {name: hr[name] for name in ("namespace", "documents", "chunks", "public", "organization")} == {
        "namespace": "hr", "documents": 1, "chunks": chunks, "public": 0, "organization": 1
    }  # fmt: skip
    assert chunks > 1
    assert [each.partition("@")[2] for each in hr["embedders"]] == ["256"]
    assert hr["published_at"].endswith("+00:00")
    lines = parted("namespaces").stdout.splitlines()
    assert [line.split()[0] for line in lines if line[:2] in ("de", "hr")] == ["default", "hr"]


def test_deleted_namespace_leaves_in_one_publish_and_can_come_back(parted):
    assert found(parted, "payroll") != []
    done = parted("namespaces", "delete", "hr", "--yes", "--json").json
    assert (done["removed"], done["version"], done["sources"]) == (1, 4, ["staff"])
    assert found(parted, "payroll") == []
    assert [each["namespace"] for each in parted("namespaces", "--json").json["namespaces"]] == ["default"]
    assert parted("history", "--json").json["versions"][0]["rows"] == 1
    assert parted("restore", "--version", "3", "--namespace", "hr").code == 0
    assert len(found(parted, "payroll")) == 1


def test_deleting_tells_how_to_have_it_back(parted):
    told = parted("namespaces", "delete", "hr", "--yes").stdout
    assert "Removed 1 document of hr" in told
    assert "parquetry restore --version 3 --namespace hr" in told
    assert "staff in the settings file feeds hr" in told


def test_deleting_without_agreement_is_refused(parted):
    told = parted("namespaces", "delete", "hr")
    assert told.code == 3
    assert told.complaint == "1 document of namespace 'hr' would be removed; to agree, give --yes"
    assert len(found(parted, "payroll")) == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("namespaces", "delete", "it", "--yes"), "no namespace 'it' in corpus"),
        (("namespaces", "delete", "*", "--yes"), "it has default, hr"),
        (("namespaces", "delete"), "Missing argument 'NAME'"),
        (("namespaces", "--corpus", "elsewhere", "delete", "hr"), "options go to the end"),
        (("namespaces", "remove"), "No such command 'remove'"),
        (("export",), "Missing argument 'DIR'"),
        (("export", "out"), "say on whose behalf to export: --user, --org or both; or --public alone"),
        (("export", "out", "--public", "--user", "ada"), "say on whose behalf"),
        (("export", "out", "--user", "ada", "--where", "SELECT 1"), "where 'SELECT 1'"),
        (("export", "docs/oak.txt", "--public"), "docs/oak.txt cannot be written: "),
        (("sql", "--user", "ada"), "--user and --org go with a statement"),
        (("sql", "--org", "acme", "FROM read_text('/etc/passwd')"), "SQL: Permission Error"),
    ],
)
def test_wrong_use_is_one_line_and_changes_nothing(parted, arguments, problem):
    told = parted(*arguments)
    assert (told.code, told.stdout) == (2, "")
    assert problem in told.complaint
    assert parted("namespaces", "--json").json["version"] == 3


def test_empty_corpus_has_no_namespaces(parted):
    for name in ("hr", "default"):
        assert parted("namespaces", "delete", name, "--yes").code == 0
    assert parted("namespaces").stdout == "No documents.\n"


def test_search_names_several_namespaces(parted):
    both = found(parted, "oak table", "--namespace", "hr", "--namespace", "default")
    assert len(both) == 2
    assert len(found(parted, "oak table", "--namespace", "hr")) == 1


@pytest.mark.parametrize(("owner", "documents"), [(("--org", "acme"), 5), (("--public",), 4), (("--user", "ada"), 4)])
def test_export_holds_what_its_owner_may_see(parted, owner, documents):
    done = parted("export", "out", *owner, "--json").json
    assert (done["file"], done["documents"], done["version"]) == ("out/corpus.duckdb", documents, 3)
    program = Path(sys.executable).with_name("duckdb")
    command = [
        program,
        "-readonly",
        "-csv",
        "-noheader",
        done["file"],
        "-c",
        "SELECT count(*) FROM search_text('payroll')",
    ]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"{documents - 4}\n"


def test_export_for_people_tells_how_to_open_it(parted):
    told = parted("export", "out", "--org", "acme").stdout
    assert "Wrote out/corpus.duckdb: 5 documents" in told
    assert "duckdb -readonly out/corpus.duckdb" in told


def test_sql_on_behalf_of_somebody_sees_what_is_theirs(parted):
    def counted(*options):
        return parted("sql", "SELECT count(*) FROM documents", "--json", *options).json["rows"]

    assert counted() == [[7]]
    assert counted("--org", "acme") == [[5]]
    assert counted("--user", "ada") == [[4]]
    assert parted("sql", "FROM runs", "--user", "ada", "--json").json["rows"] == []


def test_listing_and_showing_on_behalf_of_somebody_know_no_other_documents(parted):
    def listed(*options):
        return [each["path"] for each in parted("documents", "--json", *options).json["documents"]]

    assert "pay.md" in listed()
    assert "pay.md" in listed("--org", "acme")
    assert listed("--user", "ada") == listed("--org", "acme' OR true --") == [p for p in listed() if p != "pay.md"]
    assert "payroll" in parted("show", "pay.md", "--org", "acme").stdout
    assert len(parted("chunks", "pay.md", "--org", "acme", "--json").json["chunks"]) > 1
    for command in ("show", "chunks"):
        hidden, missing = (parted(command, name, "--user", "ada") for name in ("pay.md", "nothing.md"))
        assert hidden.code == 2
        assert hidden.complaint.replace("pay.md", "nothing.md") == missing.complaint
    identity = parted("show", "pay.md", "--json").json["document_id"]
    assert parted("show", identity, "--user", "ada").code == 2
