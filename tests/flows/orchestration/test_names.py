"""Names and signals: flow runs with hostile names, and one whose signal Python ignores."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from html import escape

import pytest
from markdown_it import MarkdownIt

from parquetry.errors import OutageError, RefusedError
from parquetry.flows.orchestration.flow_run import cancelled, failed, refused, without_index
from parquetry.flows.orchestration.parameters import ReindexParameters
from parquetry.flows.orchestration.report import as_markdown, failures_table, report_markdown
from parquetry.flows.pipelines.documents import Request as RefreshRequest
from parquetry.flows.refresh import reindex, run_request
from parquetry.planning.report import RunReport
from parquetry.serving.cli.progress import Observer
from parquetry.tasks.engine.base import Cancelled
from tests.terminal_signs import obeyed

PATIENCE = 120
"""maximum seconds for any step on a busy machine"""
DEAF_RUN = """
import os, signal, threading, weakref
import parquetry.flows.orchestration.flow_run
from parquetry.masked_output import guard_output
from prefect.utilities.engine import capture_sigterm

class Document:
    pass

document = Document()
kept = weakref.ref(document, lambda _: signal.raise_signal(signal.SIGTERM))
guard_output()
with capture_sigterm():
    del document
    threading.Event().wait(60)
"""


@pytest.fixture
def library(workshop):
    """Two documents."""
    for number in range(2):
        workshop.write(f"{number}.md", f"# Rule {number}\n\nCount the boards {number + 2} times.\n")
    return workshop


def run(workshop) -> RunReport:
    return run_request(RefreshRequest(workshop.settings), Observer())


def root(workshop) -> str:
    return workshop.settings.corpus.root


def test_names_that_a_terminal_obeys_are_visible_in_all_that_prefect_keeps(library, records, lines):
    """Names of a document and a folder with an escape sequence, a text direction override and a line break."""
    library.write("x\x1b[2J\u202ey\nz.docx", "no document")
    library.write("kept\x1b[2J\u202e\nout/.parquetry.toml", "tags = [")
    library.write("kept\x1b[2J\u202e\nout/a.md", "Count the boards.")
    report = run(library)
    flow_run = records.flow_run(root(library))
    artifacts = records.artifacts(flow_run)
    told = [
        *lines.messages,
        *json.loads(artifacts["refresh-failures-default"])[0].values(),
        str(flow_run.state.message),
    ]
    assert any("z.docx" in str(each) for each in lines.messages)
    assert as_markdown("\x1b[2J\u202e\nout") in artifacts["refresh-report-default"]
    assert [each for each in map(str, told) if obeyed(each)] == []
    assert not obeyed(artifacts["refresh-report-default"], allowed="\n")
    failure, *_ = report.failures
    (row,) = failures_table(replace(report, failures=(replace(failure, detail="a\x1b[2J\u202e\nb"),)))
    assert row["detail"] == "a\\u{1b}[2J\\u{202e}\\u{a}b"


@pytest.mark.parametrize(
    "state",
    [
        lambda said: refused(RefusedError(said)),
        lambda said: failed(OutageError(said)),
        lambda said: cancelled(None, Cancelled(said)),
        without_index,
    ],
    ids=["refused", "failed", "cancelled", "without-index"],
)
def test_message_of_a_final_state_shows_what_a_terminal_obeys(state):
    message = state("docs: a\x1b[2J\u202e\nb is gone").message
    assert message.endswith("docs: a\\u{1b}[2J\\u{202e}\\u{a}b is gone")


@pytest.mark.slow
def test_names_are_no_markup_in_the_report(library, prefect_api):
    """Otherwise viewing the report would load the image, and its links could have misleading texts."""
    name = "![a](http://192.0.2.1/p.png) [b](http://192.0.2.1) <img src=x> *c* _d_ `e` | f ~~g~~ # h & &lt; \\i"
    told = replace(run(library), refused=(name,), outages=(name,), warnings=(name,), left_out=(name,))
    page = MarkdownIt("gfm-like", {"linkify": False}).render(report_markdown(told))
    assert page.count(escape(name)) == 4
    assert re.findall("<(img|a|em|code|s)[ >]", page) == ["code"]  # the command that shows all notes


def test_error_before_anything_is_read_ends_the_flow_run_with_its_line(library, records):
    run(library)
    asked = ReindexParameters(documents=["a\x1b[2J\u202e\nb.md"])
    state = reindex(asked, corpus=library.settings.corpus.root, return_state=True)
    assert (state.type, obeyed(state.message)) == ("FAILED", set())
    assert "no document of" in state.message
    name = records.flow_runs(root(library))[0].name
    assert name.startswith("reindex-a\\u{1b}[2J\\u{202e}\\u{a}b.md-2")


@pytest.mark.slow
def test_run_of_a_service_ends_where_python_ignores_the_signal():
    """Raised while an object is deleted, the signal would be printed with a traceback, and the run would continue."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    ended = subprocess.run(
        [sys.executable, "-c", DEAF_RUN],
        env={**environment, "PREFECT__FLOW_RUN_ID": "00000000-0000-0000-0000-000000000000"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGTERM, "", "")
