"""Report of a run as artifacts for the Prefect UI."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from prefect.artifacts import create_markdown_artifact, create_table_artifact

from parquetry.planning.report import RunReport, dollars, failures_by_reason
from parquetry.printing import visible
from parquetry.sessions.report import SessionsReport

MOST_FAILURES = 1000
"""maximum number of rows of the table; the corpus's table `failures` has all"""
MOST_WARNINGS = 50
_MARKUP = re.compile(r"[\\`*_\[\]<>|~!#&$]")


def create_artifacts(report: RunReport, kind: str, namespaces: Iterable[str]) -> None:
    """Create artifacts of the flow run for the report and for the documents that are not indexed.

    The keys `{kind}-report-{namespace}` and `{kind}-failures-{namespace}` group a namespace's reports into a history.

    Args:
        report: report of the run.
        kind: refresh or reindex.
        namespaces: namespaces of the run.
    """
    create_markdown_artifact(
        report_markdown(report, kind), key=artifact_key(f"{kind}-report", namespaces), description="What the run did"
    )
    create_table_artifact(
        failures_table(report),
        key=artifact_key(f"{kind}-failures", namespaces),
        description="Documents that are not indexed, and why",
    )


def artifact_key(what: str, namespaces: Iterable[str]) -> str:
    """Return a key of lower-case letters, digits and hyphens, the only characters Prefect accepts."""
    name = "-".join([what, *sorted(namespaces)]).lower()
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:200]


def report_markdown(report: RunReport, kind: str = "refresh") -> str:
    """Return the report as Markdown."""
    work = report.work
    lines = [
        *opening_lines(kind, report),
        *count_lines("documents", report.documents.as_dict().items()),
        *count_lines(
            "work",
            (
                ("chunks written", work.chunks_written),
                ("chunks embedded", work.chunks_embedded),
                ("vectors reused", work.chunks_reused),
                ("bytes read", work.bytes_read),
                ("tokens", work.tokens),
            ),
        ),
        f"| cost | {dollars(work.cost_usd)} |",
    ]
    for kept in report.kept[:MOST_WARNINGS]:
        lines += ["", f"{as_markdown(str(kept))}."]
    for line in report.left_out:
        lines += ["", f"{as_markdown(line[0].upper() + line[1:])}."]
    if report.failures:
        lines += ["", "| not indexed | documents |", "| --- | ---: |"]
        lines += [f"| {reason} | {count:,} |" for reason, count in failures_by_reason(report.failures).items()]
    if report.seconds_by_stage:
        lines += ["", "| stage | seconds |", "| --- | ---: |"]
        lines += [f"| {stage} | {seconds:.1f} |" for stage, seconds in report.seconds_by_stage.items()]
    if report.slowest:
        lines += ["", "| slowest documents | stage | seconds |", "| --- | --- | ---: |"]
        lines += [f"| {as_markdown(item.uri)} | {item.stage} | {item.seconds:.1f} |" for item in report.slowest]
    if report.warnings:
        lines += ["", "Notes (`parquetry documents --notes` lists those on documents):", ""]
        lines += [f"- {as_markdown(warning)}" for warning in report.warnings[:MOST_WARNINGS]]
        if len(report.warnings) > MOST_WARNINGS:
            lines.append(f"- and {len(report.warnings) - MOST_WARNINGS:,} more")
    return "\n".join(lines)


def as_markdown(text: str) -> str:
    """Escape a text for a line of Markdown, so that names and titles cannot add markup or load images."""
    return _MARKUP.sub(r"\\\g<0>", visible(text))


def opening_lines(kind: str, report: RunReport | SessionsReport) -> list[str]:
    """Return the lines that open every report: title, outcome, and the reasons for a failure."""
    outcome = f"Version {report.version_before} -> **{report.version}**"
    if report.version == report.version_before:
        outcome = f"Nothing to publish, still version **{report.version}**,"
    lines = [f"# {kind.capitalize()} {report.run_id}", "", f"{outcome} in {report.seconds:.1f} s."]
    for outage in report.outages:
        lines += ["", f"**Failed:** {as_markdown(outage)}"]
    for refusal in report.refused if isinstance(report, RunReport) else ():
        lines += ["", f"**Refused:** {as_markdown(refusal)}"]
    if report.index_error is not None:
        lines += ["", f"**Search index not written:** {as_markdown(report.index_error)}"]
    return lines


def count_lines(title: str, counts: Iterable[tuple[str, int]]) -> list[str]:
    """Return a table of counts."""
    return ["", f"| {title} | |", "| --- | ---: |", *(f"| {name} | {value:,} |" for name, value in counts)]


def visible_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make control and invisible characters in the cells of a table visible."""
    return [{name: visible(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in rows]


def failures_table(report: RunReport) -> list[dict[str, Any]]:
    """Return one row per document that is not indexed."""
    rows = [
        {
            "status": failure.status,
            "uri": failure.uri,
            "stage": failure.stage,
            "reason": failure.reason,
            "detail": failure.detail,
            "attempts": failure.attempts,
        }
        for failure in report.failures[:MOST_FAILURES]
    ]
    return visible_rows(rows) or [{"status": "every document is indexed"}]
