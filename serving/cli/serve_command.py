"""The command `serve`: the service, and with targets the whole product in one command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from parquetry.errors import SettingsError
from parquetry.printing import tell
from parquetry.serving.access.origin import is_loopback
from parquetry.serving.cli.options import ConfigOption, CorpusOption, NamespaceOption
from parquetry.serving.service.listening import listen, url_of
from parquetry.serving.service.supervising import APPLICATION, Service
from parquetry.serving.state.environment import exported
from parquetry.serving.state.folder import state_folder
from parquetry.settings.sections import Settings, load_settings, override
from parquetry.telemetry.json_logs import log_service, say

TargetsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET",
        help="Folders, files, URIs or names of sources to index and keep fresh; default: serve the corpus as it is.",
    ),
]


def serve(
    targets: TargetsArgument = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Address; any but loopback needs tokens."),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", min=0, max=65_535, help="Port; 0 for a free one.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", min=1, max=64, help="Processes that answer requests.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse requests that change the corpus.")] = False,
    upstream: Annotated[
        str | None,
        typer.Option("--upstream", metavar="URL", help="OpenAI-compatible model service that chats are passed on to."),
    ] = None,
    token_required: Annotated[
        bool, typer.Option("--token-required", help="Refuse requests without a token on loopback, too.")
    ] = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
) -> None:
    """Answer requests over HTTP; keep targets fresh.

    Targets are indexed first. Settings are in [serve]; options override them. Ctrl-C stops it.
    """
    given = {"host": host, "port": port, "workers": workers}
    given |= {"read_only": read_only or None, "token_required": token_required or None}
    settings, overrides = _settings(config, corpus, namespace, upstream, given, targets or ())
    _check_targets(settings, targets or (), namespace)
    state = state_folder(settings)
    _check_address(settings, state)
    # Nothing else is started for a service that cannot listen.
    listener = listen(settings.serve.host, settings.serve.port)
    url, root = url_of(listener, settings.serve.host), settings.corpus.root
    log_service(settings.observability)
    service = Service(
        listener,
        exported(config, overrides),
        settings.serve.workers,
        None if settings.serve.read_only else {"targets": list(targets or ()), "namespace": namespace},
        _tell,
        lambda: tell(f"Serving {root} at {url} (Ctrl-C stops it)."),
        APPLICATION,
    )
    code = service.run()
    tell("Stopped.")
    if code:
        raise typer.Exit(code)


def _settings(
    config: Path | None,
    corpus: str | None,
    namespace: str | None,
    upstream: str | None,
    given: dict[str, Any],
    targets: Sequence[str],
) -> tuple[Settings, dict[str, dict[str, Any]]]:
    """Return the settings of the service, and what the command line overrides."""
    settings = load_settings(config)
    overrides: dict[str, dict[str, Any]] = {"serve": {key: value for key, value in given.items() if value is not None}}
    if corpus is not None:
        overrides["corpus"] = {"root": corpus}
    if upstream is not None:
        overrides["upstream"] = {"base_url": upstream}
    if namespace is not None and targets and not settings.source:
        # All that is served is in this namespace: requests need not name it.
        overrides.setdefault("corpus", {})["namespace"] = namespace
    overrides = {section: values for section, values in overrides.items() if values}
    return (override(settings, overrides) if overrides else settings), overrides


def _check_targets(settings: Settings, targets: Sequence[str], namespace: str | None) -> None:
    """Refuse targets that cannot be refreshed, before anything is started.

    Raises:
        SettingsError: names the target.
    """
    if not targets:
        return
    if settings.serve.read_only:
        raise SettingsError("--read-only serves the corpus as it is, and targets would change it; leave one out")
    from parquetry.serving.jobs.watching import scopes_to_watch

    scopes_to_watch(settings, targets, namespace)


def _check_address(settings: Settings, state: Path) -> None:
    """Refuse to let other machines in without tokens.

    Raises:
        SettingsError: says what to do.
    """
    serve = settings.serve
    if is_loopback(serve.host) or serve.token_required:
        return
    from parquetry.serving.access.tokens import TokenStore

    with TokenStore(state) as tokens:
        now = datetime.now(UTC)
        if any(token.state(now) == "active" for token in tokens.list()):
            return
    raise SettingsError(
        f"{serve.host} lets other machines in, and there is no token yet; make one with `parquetry token create --name "
        "NAME`, or give --token-required to start without any"
    )


def _tell(line: str) -> None:
    say(line, is_problem=True)
    sys.stderr.flush()
