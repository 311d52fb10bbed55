"""The bounds of the service that docs/limits.md names are those of the code."""

import pytest

from parquetry.serving.access import audit
from parquetry.serving.chat import retrieval
from parquetry.serving.http import admission, body_limits, gateway_models, json_bodies, retrieving, turns
from parquetry.serving.jobs import store
from parquetry.serving.service import connections
from parquetry.settings.chat import UpstreamSettings
from parquetry.settings.serving import ServeSettings
from tests.documentation import text_of

MIB = 1024 * 1024
SET = ServeSettings()
MODEL = UpstreamSettings()
ROWS = {
    "body of a request": (
        f"({SET.max_body_bytes // MIB} MiB)",
        f"({SET.max_document_bytes // MIB} MiB)",
        f"({SET.max_file_bytes // MIB} MiB)",
        f"`/mcp` {body_limits.MCP_BYTES // MIB} MiB",
    ),
    "time for a body to arrive": (f"({SET.body_seconds:.0f} s)", f"{body_limits._FILE_RATE / 1024:.0f} KiB/s"),
    "head of a request": (f"{admission.MOST_HEADERS // 1024} KiB", f"{connections.HEAD_SECONDS:.0f} s"),
    "answer that nobody reads": (f"{connections.STALLED_SECONDS:.0f} s",),
    f"values of a JSON body above {json_bodies.UNCOUNTED_BYTES // MIB} MiB": (f"{json_bodies.MOST_VALUES:,}",),
    "documents of one request": (f"{gateway_models.MOST_DOCUMENTS:,}",),
    "queries of one request": (
        f"{gateway_models.MOST_QUERIES},",
        f"{gateway_models.MOST_RESULTS} results",
        f"{gateway_models.MOST_CHUNKS:,} in all",
    ),
    "query, and context of a query": (f"{gateway_models.LONGEST_QUERY:,}", f"{gateway_models.LONGEST_CONTEXT:,}"),
    "texts of whole documents in one answer": (f"{retrieving.MOST_LOADED // MIB} Mi",),
    "searches of the knowledge APIs, vector stores and Dify that compute at a time": (
        f"{turns.SEARCHES} in each",
        f"{turns.LONG_SEARCHES} requests",
    ),
    "searches of chats that compute at a time": (
        f"{retrieval.SEARCHES} in each",
        f"{retrieval.WAITING_SEARCHES} if",
    ),
    "answer of a model service": (f"({MODEL.max_answer_bytes // MIB} MiB)",),
    "jobs that wait": (f"{store.MOST_QUEUED:,};", f"{store.MOST_QUEUED_OF_ONE:,} of"),
    "small writes that are published together": (
        f"{store.MOST_TOGETHER:,};",
        f"{store.MOST_TOGETHER_OF_ONE} of each",
    ),
    "jobs that ended": (f"{store.KEPT_SECONDS // 86_400} days", f"{store.KEPT_JOBS:,}"),
    "stored responses of a token": (f"({MODEL.max_responses:,})", f"({MODEL.response_days:.0f} days)"),
    "audit events": (
        f"{audit.MOST_BYTES // MIB} MiB",
        f"{audit.KEPT_FILES} files",
        f"{audit.REFUSED_PER_MINUTE} refusals",
    ),
}


@pytest.mark.parametrize("what", ROWS)
def test_bound_of_the_service_is_that_of_the_code(what):
    (row,) = [line for line in text_of("docs/limits.md").splitlines() if line.startswith(f"| {what} |")]
    assert [part for part in ROWS[what] if part not in row.split("|")[2]] == []
