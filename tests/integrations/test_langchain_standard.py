"""LangChain's own standard tests of a retriever; they run where its package `langchain-tests` is installed."""

import pytest

from parquetry import Corpus
from tests.workshop import Workshop

standard = pytest.importorskip("langchain_tests.integration_tests.retrievers", reason="needs langchain-tests")
pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("standard"))
    for number in range(6):
        workshop.write(f"{number}.md", f"Table number {number} is of oak.")
    workshop.refresh()
    with Corpus(workshop.settings) as opened:
        yield opened


class TestStandard(standard.RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _over(self, corpus):
        self._corpus = corpus

    @property
    def retriever_constructor(self):
        from parquetry.integrations.langchain import LangChainRetriever

        return LangChainRetriever

    @property
    def retriever_constructor_params(self):
        return {"corpus": self._corpus}

    @property
    def retriever_query_example(self):
        return "oak table"
