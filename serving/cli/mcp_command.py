"""The command `mcp`: the Model Context Protocol on standard input and output."""

from __future__ import annotations

import os
from typing import Annotated

import anyio
import typer

from parquetry.errors import SettingsError
from parquetry.known_secrets import announce
from parquetry.serving.access.principals import OPERATOR, Principal
from parquetry.serving.cli.filter_options import OrgOption, UserOption
from parquetry.serving.cli.options import ConfigOption, CorpusOption, NamespaceOption, settings_for
from parquetry.settings.sections import Settings, override
from parquetry.storage.lake.lake import Lake

TOKEN = "PARQUETRY_TOKEN"  # noqa: S105 - the name of a variable
_NAMESPACE_HEADER = "X-Parquetry-Namespace"

RememberOption = Annotated[
    bool,
    typer.Option("--allow-remember", help="Offer the tool `remember`, which writes; needs a model in [llm]."),
]
ServiceOption = Annotated[
    str | None,
    typer.Option("--service", metavar="URL", help=f"Ask this service instead, with the token in {TOKEN}."),
]


def mcp(
    service: ServiceOption = None,
    allow_remember: RememberOption = False,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    user: UserOption = None,
    org: OrgOption = None,
) -> None:
    """Serve the corpus to an MCP client that starts this command.

    Standard input and output belong to the protocol. The client's settings name this command; see docs/mcp.md.
    """
    if service is not None:
        if config or corpus or user or org or allow_remember:
            raise SettingsError(
                "--service asks a service, and the rights of its token decide: leave out --config, --corpus, --user, "
                "--org and --allow-remember"
            )
        _serve_service(service, namespace)
        return
    settings = override(settings_for(config, corpus), {"serve": {"vectors_in_memory": False}})
    if allow_remember and not settings.llm.model:
        raise SettingsError("--allow-remember compares statements with a language model: set model in [llm]")
    # A mistyped corpus is told at once, not with the first question.
    Lake(settings.corpus.root)
    _serve_corpus(settings, namespace, _principal(user, org), allow_remember=allow_remember)


def _principal(user: str | None, org: str | None) -> Principal:
    if user is None and org is None:
        return OPERATOR
    return Principal(None, user, org, None, frozenset({"search", "read", "write"}), None)


def _serve_corpus(settings: Settings, namespace: str | None, principal: Principal, *, allow_remember: bool) -> None:
    from parquetry.serving.mcp.server import make_server
    from parquetry.serving.mcp.standard_streams import serve_streams
    from parquetry.serving.mcp.visit import Visit
    from parquetry.serving.service.follower import CorpusFollower

    follower = CorpusFollower(settings)
    memory = None
    if allow_remember:
        from parquetry.serving.embedded_memory import EmbeddedMemory

        memory = EmbeddedMemory(settings, principal, follower)
    visit = Visit(settings, follower, principal, named=namespace, everywhere=True, memory=memory)
    follower.start()
    try:
        anyio.run(serve_streams, make_server(lambda _: visit))
    finally:
        follower.stop()


def _serve_service(address: str, namespace: str | None) -> None:
    from parquetry.serving.mcp.bridge import SECONDS, serve_bridge
    from parquetry.serving.service_client import ServiceClient

    token = os.environ.get(TOKEN) or None
    client = ServiceClient(address, token, SECONDS)
    try:
        # A mistyped address or token is told at once, not with the first question.
        client.read("GET", "/api/v1/knowledge/namespaces")
    finally:
        client.close()
    headers = {} if namespace is None else {_NAMESPACE_HEADER: namespace}
    if token is not None:
        announce(token)
        headers["Authorization"] = f"Bearer {token}"
    anyio.run(serve_bridge, f"{client.address}/mcp", headers)
