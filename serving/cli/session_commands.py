"""The commands `parquetry sessions ...`: learn from finished chat sessions."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from parquetry.errors import RefusedError
from parquetry.serving.cli.arguments import Command
from parquetry.serving.cli.options import (
    BudgetOption,
    ConfigOption,
    CorpusOption,
    JsonOption,
    NamespaceOption,
    VerboseOption,
    settings_for,
)
from parquetry.serving.cli.output import print_json
from parquetry.serving.cli.progress import progress
from parquetry.serving.cli.run_commands import DirectOption, StrictOption, TargetsArgument
from parquetry.serving.cli.session_output import ask_about, print_session_plan, print_sessions_report
from parquetry.serving.cli.suggestions import Commands

if TYPE_CHECKING:
    from parquetry.flows.pipelines.sessions import SessionsRequest
    from parquetry.sessions.merge.effects import MergeProposal

app = typer.Typer(cls=Commands, name="sessions", help="Learn from finished chat sessions.", no_args_is_help=True)
UserOption = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="Owner of the sessions in ad-hoc targets.")
]
OrgOption = Annotated[
    str | None, typer.Option("--org", metavar="NAME", help="Organization of the sessions in ad-hoc targets.")
]
MaxVisibilityOption = Annotated[
    Literal["public", "organization", "individual"] | None,
    typer.Option("--max-visibility", help="Widest visibility of what is learned; default: the owner alone."),
]

RetryQuarantinedOption = Annotated[
    bool,
    typer.Option("--retry-quarantined", help="Retry quarantined windows."),
]


@app.command(cls=Command)
def plan(
    targets: TargetsArgument = None,
    user: UserOption = None,
    org: OrgOption = None,
    max_visibility: MaxVisibilityOption = None,
    retry_quarantined: RetryQuarantinedOption = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show what there is to learn from and what it would cost.

    Writes and spends nothing.
    """
    from parquetry.flows.pipelines.sessions import AdHoc, SessionsRequest, plan_sessions_only

    settings = settings_for(config, corpus)
    request = SessionsRequest(
        settings, tuple(targets or ()), namespace, AdHoc(user, org, max_visibility), retry_quarantined
    )
    planned = plan_sessions_only(request)
    if as_json:
        print_json(planned.as_json())
    else:
        print_session_plan(planned, verbose=verbose)


@app.command(cls=Command)
def refresh(
    targets: TargetsArgument = None,
    user: UserOption = None,
    org: OrgOption = None,
    max_visibility: MaxVisibilityOption = None,
    retry_quarantined: RetryQuarantinedOption = False,
    direct: DirectOption = False,
    review: Annotated[
        bool, typer.Option("--review", help="Show every merge and ask before anything is published.")
    ] = False,
    strict: StrictOption = False,
    budget: BudgetOption = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Learn from what is new in chat sessions.

    Of the configured sources, or of the given folders and files.
    """
    from parquetry.flows.pipelines.sessions import AdHoc, SessionsRequest

    if review and not sys.stdin.isatty():
        raise RefusedError("--review asks about every merge, and there is no terminal to answer; nothing was done")
    settings = settings_for(config, corpus, sessions=budget)
    request = SessionsRequest(
        settings, tuple(targets or ()), namespace, AdHoc(user, org, max_visibility), retry_quarantined
    )
    _run(request, direct=direct, review=review, as_json=as_json, strict=strict, verbose=verbose)


def _run(request: SessionsRequest, *, direct: bool, review: bool, as_json: bool, strict: bool, verbose: bool) -> None:
    with progress(silent=as_json or review) as observer:
        asked = _asked if review else None
        if direct:
            from parquetry.flows.pipelines.sessions import run_sessions
            from parquetry.tasks.engine.base import DirectEngine

            report = run_sessions(request, DirectEngine(), observer, asked)
        else:
            from parquetry.flows.local import run_sessions_on_prefect

            report = run_sessions_on_prefect(request, observer, asked, verbose=verbose)
    if as_json:
        print_json(report.as_json())
    else:
        print_sessions_report(report, request.settings.corpus.root, verbose=verbose)
    if report.error is not None:
        raise typer.Exit(report.error.exit_code)
    if strict and any(failure.status == "failed" for failure in report.failures):
        raise typer.Exit(1)


def _asked(proposals: Sequence[MergeProposal]) -> Collection[str]:
    """Ask at the terminal about each merge, and return the keys of the rejected ones."""
    return [
        proposal.key
        for number, proposal in enumerate(proposals, start=1)
        if not ask_about(proposal, number, len(proposals))
    ]
