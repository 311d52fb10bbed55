"""A run's report as artifacts for the Prefect UI."""

from __future__ import annotations

from typing import Any

from knowledge.report import RunReport, failures_by_reason

MOST_FAILURES = 1000
"""rows of the table; the corpus's own table `failures` has them all"""


def report_markdown(report: RunReport) -> str:
    """The report as Markdown."""
    counts, work = report.documents, report.work
    lines = [
        f"# Refresh {report.run_id}",
        "",
        f"Version {report.version_before} -> **{report.version}** in {report.seconds:.1f} s.",
        "",
        "| documents | |",
        "| --- | ---: |",
        *(f"| {name} | {value} |" for name, value in counts.as_dict().items()),
        "",
        "| work | |",
        "| --- | ---: |",
        f"| chunks written | {work.chunks_written} |",
        f"| chunks embedded | {work.chunks_embedded} |",
        f"| vectors reused | {work.chunks_reused} |",
        f"| bytes read | {work.bytes_read} |",
        f"| tokens | {work.tokens} |",
        f"| cost | ${work.cost_usd:.4f} |",
    ]
    if report.failures:
        lines += ["", "| not indexed | documents |", "| --- | ---: |"]
        lines += [f"| {reason} | {count} |" for reason, count in failures_by_reason(report.failures).items()]
    if report.refused:
        lines += ["", *(f"**Refused:** {refusal}" for refusal in report.refused)]
    return "\n".join(lines)


def failures_table(report: RunReport) -> list[dict[str, Any]]:
    """One row per document that is not indexed."""
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
    return rows or [{"status": "every document is indexed"}]
