"""OpenAI's client, once for each worker of a service: with one connection, which stays with the worker that took it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import openai
import psutil

from tests.servers.knowledge_service import KnowledgeService


def connected(service: KnowledgeService, token: str) -> tuple[openai.OpenAI, int]:
    """Return a client with one connection, and the process that answers it."""
    one = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=600)
    http = httpx.Client(limits=one, timeout=120, trust_env=False)
    client = openai.OpenAI(base_url=f"{service.url}/v1", api_key=token, max_retries=0, http_client=http)
    answer = http.get(f"{service.url}/health")
    port = answer.extensions["network_stream"].get_extra_info("client_addr")[1]
    for process in psutil.Process(service.pid).children(recursive=True):
        if any(each.raddr and each.raddr.port == port for each in process.net_connections("tcp")):
            return client, process.pid
    raise AssertionError("no worker has the connection")


@contextmanager
def one_client_of_each_worker(service: KnowledgeService, token: str) -> Iterator[list[openai.OpenAI]]:
    """Yield a client for each of two workers."""
    found: dict[int, openai.OpenAI] = {}
    with ExitStack() as clients:
        while len(found) < 2:
            client, pid = connected(service, token)
            if pid in found:
                client.close()
            else:
                found[pid] = clients.enter_context(client)
        yield list(found.values())
