"""Report of a run over sessions as artifacts for the Prefect UI.

Access to the UI does not imply access to every entry: private entries, and rejected ones, appear only by their
decision's id, without their text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prefect.artifacts import create_markdown_artifact, create_table_artifact

from parquetry.flows.orchestration.report import (
    MOST_WARNINGS,
    artifact_key,
    as_markdown,
    count_lines,
    opening_lines,
    visible_rows,
)
from parquetry.planning.report import dollars
from parquetry.sessions.model import Decision
from parquetry.sessions.report import SessionsReport, reasons

MOST_ROWS = 1000
"""maximum number of rows of each table; the corpus's table `decisions` has all"""
LEARNED = ("new", "merged", "contradicts")
REFUSED = ("refused", "quarantined")


def create_session_artifacts(report: SessionsReport, namespaces: Iterable[str]) -> None:
    """Create artifacts of the flow run: the report; entries learned, merged, contradicted; and rejections with reasons.

    Args:
        report: report of the run.
        namespaces: namespaces of the run.
    """
    names = sorted(namespaces)
    create_markdown_artifact(
        session_markdown(report), key=artifact_key("sessions-report", names), description="What the run did"
    )
    create_table_artifact(
        decisions_table(report.decisions, LEARNED),
        key=artifact_key("sessions-learned", names),
        description="What was learned, merged and contradicted",
    )
    create_table_artifact(
        decisions_table(report.decisions, REFUSED),
        key=artifact_key("sessions-refused", names),
        description="What was proposed and refused, and why",
    )


def session_markdown(report: SessionsReport) -> str:
    """Return the report as Markdown."""
    lines = [
        *opening_lines("sessions", report),
        *count_lines("sessions", report.sessions.items()),
        *count_lines("entries", report.entries.items()),
        *count_lines(
            "language model",
            (("calls", report.calls), ("answers that were kept", report.cached), ("tokens", report.tokens)),
        ),
        f"| cost | {dollars(report.cost_usd)} |",
        *count_lines("refused or kept apart", reasons(report.decisions).items()),
    ]
    if report.failures:
        lines += ["", "Failed:", ""]
        lines += [
            f"- {as_markdown(f'{each.uri}: {each.stage}/{each.reason}: {each.detail}')}"
            for each in report.failures[:MOST_WARNINGS]
        ]
    if report.warnings:
        lines += ["", "Worked around:", ""]
        lines += [f"- {as_markdown(warning)}" for warning in report.warnings[:MOST_WARNINGS]]
    return "\n".join(lines)


def decisions_table(decisions: Iterable[Decision], kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return one row per decision of the given kinds."""
    rows = [
        {
            "decision": each.decision_id,
            "kind": each.kind,
            "entry kind": each.entry_kind or "",
            "visible to": each.access.visibility if each.access else "nobody",
            "text": each.text if each.access and each.access.visibility != "individual" else "(not shown here)",
            "reason": each.reason or "",
            "session": each.session_uri or "",
        }
        for each in decisions
        if each.kind in kinds
    ]
    return visible_rows(rows[:MOST_ROWS]) or [{"kind": "nothing"}]
