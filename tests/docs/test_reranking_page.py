"""The settings on the reranking page are valid, and each leads to the route that the service has."""

import tomllib
from urllib.parse import urlsplit

from parquetry.rerank.registry import open_reranker
from parquetry.settings.sections import parse_settings
from tests.documentation import blocks_of
from tests.servers.rerank_server import APIS

PAGE = "docs/reranking.md"


def test_every_service_has_a_block_that_works():
    blocks = [block.code for block in blocks_of(PAGE) if block.language == "toml"]
    assert len(blocks) == len(APIS)
    for (name, api), code in zip(APIS.items(), blocks, strict=True):
        settings = parse_settings(tomllib.loads(code), name)
        assert urlsplit(f"{settings.rerank.base_url}/rerank").path == api.path
        model = settings.search.rerank.partition(":")[2]
        assert open_reranker(settings.search.rerank, settings.llm, settings.rerank).id == f"service:{model}"
