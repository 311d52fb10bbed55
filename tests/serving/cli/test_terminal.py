"""Every command shows hostile names, members, titles, pages and errors without sending control sequences."""

import io
import json
import os
import sys
import zipfile
from dataclasses import replace
from urllib.parse import quote

import pytest
from pypdf import PdfReader, PdfWriter

from parquetry.model import Access
from parquetry.serving.cli.main import run
from tests.files.pdf_writer import line, with_attachments, write_pdf
from tests.servers.web_server import Page, WebServer
from tests.serving.conftest import Result
from tests.serving.program import start
from tests.storage.notebook import Notebook, decision, entry
from tests.storage.shelf import Shelf
from tests.terminal_signs import obeyed

pytestmark = pytest.mark.slow

CONTROLS = "\x1b]52;c;Y2F0\x07\x1b[2J\x9b31m\x85\r\u202e\u2066\u2028"
EVIL = f"{CONTROLS}\nparquetry: forged\n"


def mail():
    subject = quote(CONTROLS).replace("%", "=")
    return (
        f"From: ada@example.org\nTo: bob@example.org\nSubject: =?utf-8?q?Plans_{subject}?=\n"
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n'
        "--b\nContent-Type: text/plain; charset=utf-8\n\nThe plan of the house is attached.\n"
        "--b\nContent-Type: application/acad\nContent-Transfer-Encoding: base64\n"
        f"Content-Disposition: attachment; filename*=utf-8''{quote(f'plan{EVIL}.dwg', safe='')}\n\nAAAA\n--b--\n"
    ).encode()


def pdf():
    writer = PdfWriter(PdfReader(io.BytesIO(with_attachments(write_pdf([line(72, 700, "A page.")]), [EVIL]))))
    writer.add_metadata({"/Title": f"Pages {EVIL}"})
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def package(**parts):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def word():
    office, spaces = "http://schemas.openxmlformats.org", 'xmlns="http://schemas.openxmlformats.org/package/2006'
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    return package(
        **{
            "[Content_Types].xml": f'<Types {spaces}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{kind}"/></Types>',
            "_rels/.rels": f'<Relationships {spaces}/relationships"><Relationship Id="r1" '
            f'Type="{office}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>'
            f'<Relationship Id="r2" Type="{office}/package/2006/relationships/metadata/core-properties" '
            'Target="docProps/core.xml"/></Relationships>',
            "docProps/core.xml": f'<cp:coreProperties xmlns:cp="{office}/package/2006/metadata/core-properties" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/">'
            "<dc:title>Words &#155;31m&#133;&#8238;&#8294;&#8232;&#10;parquetry: forged&#10;</dc:title>"
            "</cp:coreProperties>",
            "word/document.xml": f'<w:document xmlns:w="{office}/wordprocessingml/2006/main"><w:body><w:p><w:r>'
            "<w:t>Some words.</w:t></w:r></w:p></w:body></w:document>",
        }
    )


def box():
    return package(**{f"member{EVIL}.md": "A member of the box.", f"broken{EVIL}.docx": b"PK\x03\x04 nothing"})


def fill(folder):
    """Fill a folder in which an attacker chose every name and title."""
    (folder / f"folder{EVIL}").mkdir(parents=True)
    (folder / f"folder{EVIL}" / "oak.md").write_text(f"# Oak\n\nThe oak table {CONTROLS} has four legs.\n")
    (folder / f"name{EVIL}.txt").write_text(f"The plane {CONTROLS} table has three legs.")
    (folder / f"broken{EVIL}.docx").write_bytes(b"PK\x03\x04 nothing")
    (folder / f"strange{EVIL}.qqq").write_bytes(bytes(range(256)))
    (folder / "page.html").write_text(
        "<!doctype html><title>Page &#155;31m\u202e&#10;parquetry: forged</title><p>The beech table has two legs.</p>"
    )
    (folder / f"inner{EVIL}").mkdir()
    (folder / f"inner{EVIL}" / ".parquetry.toml").write_text('visibilty = "public"')
    for name, content in {"box.zip": box(), "pages.pdf": pdf(), "words.docx": word(), "mail.eml": mail()}.items():
        (folder / name).write_bytes(content)
    (folder / os.fsdecode(b"caf\xe9.md")).write_text("The coffee table.")


class Enemy:
    """Runs commands over a corpus of an attacker's documents."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, *arguments):
        self.capsys.readouterr()
        code = run(list(arguments))
        return Result(code, *self.capsys.readouterr())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("enemy")
    fill(folder / "docs")
    with WebServer() as server:
        evil = quote(EVIL)
        forged = f"<!doctype html><title>A {EVIL}</title><p>A page about the elm table."
        server.pages |= {f"/a{evil}": Page(forged), f"/{evil}?q={evil}": Page(forged)}
        server.pages[f"/odd{evil}"] = Page(b"\0\1\2", headers={"Content-Type": "application/x-\x9b31m"})
        listed = "".join(
            f"{server.url}/{each}\n" for each in (f"a{evil}", f"{evil}?q={evil}", f"gone{evil}", f"odd{evil}")
        )
        server.pages["/urls.txt"] = Page(listed + f"{server.url}/raw\u202e\x9b31m\n")
        (folder / "parquetry.toml").write_text(
            '[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n[refresh]\nattempts = 1\n'
            '[[source]]\nname = "docs"\nuri = "docs"\n'
            f'[[source]]\nname = "site"\nuri = "{server.url}/urls.txt"\n'
            f'options = {{ allow = ["{server.place}"], requests_per_second = 1000 }}\n'
        )
        (folder / "queries.txt").write_text(f"oak {CONTROLS} table\n")
        yield folder


@pytest.fixture
def enemy(corpus, monkeypatch, capsys):
    monkeypatch.chdir(corpus)
    enemy = Enemy(corpus)
    enemy.capsys = capsys
    if not (corpus / "corpus").exists():
        harmless(enemy("plan"), enemy("plan", "-v"), enemy("plan", "--json"), enemy("refresh", "--direct"))
    return enemy


def harmless(*results):
    """Check that a terminal interprets none of the output, and that every line is one of ours."""
    for told in results:
        for stream in (told.stdout, told.stderr):
            assert not obeyed(stream, allowed="\n\t"), stream
            assert not [each for each in stream.split("\n") if each.startswith(("parquetry: forged", "forged"))]
        assert "Traceback" not in told.stderr


COMMANDS = [
    *(
        ("plan",),
        ("plan", "-v"),
        ("refresh", "--direct"),
        ("refresh", "--direct", "-v"),
        ("status",),
        ("history", "-v"),
    ),
    *(("documents",), ("documents", "--notes"), ("documents", "--status", "failed"), ("doctor",), ("namespaces",)),
    *(("sql", "FROM documents"), ("sql", "FROM failures"), ("sql", "FROM notes"), ("sql", "FROM texts"), ("sql",)),
    *(("sql", 'SELECT path AS "a\x1b[2J\u202e\nparquetry: forged" FROM documents'),),
    *(("search", "table"), ("search", "table legs", "--explain"), ("search", "table", "--citations", "-k", "20")),
    *(("search", "table", "--context", "1"), ("search", "table", "--full"), ("search", "--queries", "queries.txt")),
    *(("search", f"table {CONTROLS}", "--level", "document", "--explain"), ("entries",), ("decisions",)),
    *(("reindex", "*.docx", "--direct"), ("export", "shared", "--public"), ("remove", "*caf*")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command).encode("unicode_escape").decode())
def test_every_command_shows_what_a_terminal_would_obey(enemy, command):
    plain, parsed = enemy(*command), enemy(*command, "--json")
    harmless(plain, parsed)
    assert plain.code == 0, plain.stderr
    for each in parsed.stdout.splitlines():
        json.loads(each)


def test_every_document_is_shown_as_text_and_parses_to_what_it_is(enemy):
    listed = enemy("documents", "--json").json["documents"]
    paths = {each["path"] for each in listed}
    assert {f"name{EVIL}.txt", f"folder{EVIL}/oak.md", f"box.zip!/member{EVIL}.md"} <= paths
    assert {f"broken{EVIL}.docx", "page.html", "pages.pdf", "words.docx", "mail.eml"} <= paths
    assert len([each for each in listed if each["status"] == "indexed"]) >= 9
    for each in listed:
        shown, chunks = enemy("show", each["document_id"]), enemy("chunks", each["document_id"])
        harmless(shown, chunks)
        harmless(enemy("show", each["document_id"], "--json"), enemy("chunks", each["document_id"], "--json"))
        assert shown.code == 0


def test_names_that_differ_are_listed_differently(enemy):
    listed = enemy("documents")
    assert listed.stdout.count("name\\u{1b}]52;c;Y2F0\\u{7}") >= 1
    assert (
        "\\u{a}parquetry: forged" in enemy("plan", "-v").stdout + listed.stdout + enemy("sql", "FROM documents").stdout
    )


def test_a_terminal_of_three_columns_gets_lines(enemy, monkeypatch):
    monkeypatch.setenv("COLUMNS", "3")
    for command in (("search", "table", "--explain"), ("search", "table", "--context", "1"), ("status",), ("sql",)):
        assert enemy(*command).code == 0


def test_tables_on_a_terminal_are_the_same(enemy, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    harmless(
        enemy("documents"), enemy("documents", "--notes"), enemy("sql", "FROM documents"), enemy("documents", "--json")
    )


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("show", f"nothing{EVIL}"), id="document"),
        pytest.param(("search", "x", "--since", EVIL), id="since"),
        pytest.param(("search", "x", "--where", f"a = '{EVIL}"), id="where"),
        pytest.param(("search", "x", "--source", EVIL), id="source"),
        pytest.param(("search", "x", "-k", EVIL), id="number"),
        pytest.param(("search", "x", f"--{EVIL}"), id="option"),
        pytest.param(("search", "--queries", f"no{EVIL}"), id="queries"),
        pytest.param((EVIL,), id="command"),
        pytest.param(("refresh", "--direct", EVIL), id="target"),
        pytest.param(("plan", "--config", EVIL), id="config"),
        pytest.param(("documents", "--corpus", EVIL), id="corpus"),
        pytest.param(("documents", "--namespace", EVIL), id="namespace"),
        pytest.param(("sql", f"SELECT '{EVIL}'::INTEGER"), id="value"),
        pytest.param(("sql", f'SELECT "{EVIL}"'), id="column"),
        pytest.param(("sql", "SELECT path::INTEGER FROM documents"), id="value-of-the-corpus"),
        pytest.param(("sql", f"SELECT error('{EVIL}')"), id="error-of-sql"),
        pytest.param(("undo", EVIL), id="undo"),
        pytest.param(("eval", EVIL), id="eval"),
    ],
)
def test_errors_are_one_line_whatever_they_name(enemy, command):
    told = enemy(*command)
    harmless(told)
    assert (told.code, told.stdout) == (2, "")
    assert told.complaint


def test_settings_of_an_enemy_are_told_in_a_line_for_each_mistake(enemy):
    (enemy.folder / "evil.toml").write_text(
        '[corpus]\nroot = "x"\n"a\\u001b[2J\\nparquetry: forged" = 1\n[chunking]\nsize = "\\u001b[2J\\u202e"\n'
    )
    told = enemy("plan", "--config", "evil.toml")
    harmless(told)
    assert told.code == 2
    assert [each.split(": ")[0] for each in told.stderr.splitlines()] == ["parquetry"] * 2


def test_logs_of_a_run_on_prefect_are_the_same(enemy):
    done = start("refresh", "-v", "--corpus", "other", cwd=enemy.folder)
    harmless(Result(done.returncode, done.stdout, done.stderr))
    assert "parquetry: forged" in done.stderr
    assert done.returncode == 0


def test_entries_of_an_enemy(tmp_path, capsys):
    shelf = Shelf(tmp_path / "corpus")
    shelf.publish({"a.md": ["a text"]})
    said = entry(f"The staging {EVIL} database.", Access("organization", org_id=f"acme{EVIL}"))
    made = replace(decision(0, entry=said), reasoning=f"because {EVIL}", session_uri=f"file:///{EVIL}", text=EVIL)
    Notebook(shelf).decide([made], [said])
    for command in (("entries",), ("entries", "--history"), ("decisions",)):
        for options in ((), ("--json",)):
            code = run([*command, *options, "--corpus", str(shelf.root)])
            told = Result(code, *capsys.readouterr())
            harmless(told)
            assert code == 0
