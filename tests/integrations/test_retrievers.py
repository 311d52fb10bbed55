"""Retrievers for LangChain and LlamaIndex over a corpus on disk and behind a service, with the real packages."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from parquetry import Corpus, Filters, TransientError
from parquetry.errors import OutageError
from parquetry.settings.sections import parse_settings
from tests.servers.chat_server import error
from tests.servers.http_app import running_app
from tests.servers.rerank_server import RerankServer
from tests.workshop import Workshop

TEXTS = {
    "leave.md": "---\nauthor: Ada\nyear: 2031\n---\n# Leave\n\n## Holiday\n\nEverybody has thirty days of holiday.\n",
    "draft.md": "Holiday of thirty days, says the draft.\n",
    "note.md": "Thirty days of holiday were discussed.\n",
}
QUERY = "days of holiday"


@dataclass(frozen=True)
class Found:
    """A result, as each framework gives it."""

    id: str
    text: str
    score: float
    metadata: dict[str, Any]


Retrieve = Callable[..., list[Found]]


@pytest.fixture(scope="module")
def server() -> Iterator[RerankServer]:
    with RerankServer("tei", []) as running:
        yield running


@pytest.fixture(scope="module")
def workshop(tmp_path_factory, server):
    workshop = Workshop(tmp_path_factory.mktemp("retrievers"))
    for path, text in TEXTS.items():
        workshop.write(path, text)
    workshop.refresh()
    workshop.sections |= {
        "search": {"rerank": "service:m", "cache_entries": 0},
        "rerank": {"base_url": server.base_url, "attempts": 1},
    }
    return workshop


@pytest.fixture(scope="module")
def service(workshop):
    """Run the service; return its address and a token."""
    sections = {
        "corpus": {"root": workshop.settings.corpus.root},
        "serve": {"token_required": True},
        **{name: workshop.sections[name] for name in ("search", "rerank")},
    }
    with running_app(parse_settings(sections, "test")) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app.url, app.resources.tokens.create("retriever", rights=["search", "read"])[1]


@pytest.fixture(params=["on disk", "behind a service"])
def corpus(request, workshop):
    if request.param == "on disk":
        with Corpus(workshop.settings) as opened:
            yield opened
        return
    address, token = request.getfixturevalue("service")
    with Corpus(address, token=token) as opened:
        yield opened


def langchain(corpus: Corpus, *, awaited: bool = False, **options: Any) -> list[Found]:
    from parquetry.integrations.langchain import LangChainRetriever

    retriever = LangChainRetriever(corpus=corpus, **options)
    found = asyncio.run(retriever.ainvoke(QUERY)) if awaited else retriever.invoke(QUERY)
    return [Found(each.id, each.page_content, each.metadata["relevance"], each.metadata) for each in found]


def llamaindex(corpus: Corpus, *, awaited: bool = False, **options: Any) -> list[Found]:
    from parquetry.integrations.llamaindex import LlamaIndexRetriever

    retriever = LlamaIndexRetriever(corpus, **options)
    found = asyncio.run(retriever.aretrieve(QUERY)) if awaited else retriever.retrieve(QUERY)
    return [Found(each.node.node_id, each.node.text, each.score, each.node.metadata) for each in found]


@pytest.fixture(params=[langchain, llamaindex], ids=lambda each: each.__name__)
def retrieve(request) -> Retrieve:
    return request.param


def files(found: list[Found]) -> list[str]:
    return [each.metadata["filename"] for each in found]


def test_results_are_those_of_the_corpus_with_their_place(corpus, retrieve):
    plain = corpus.search(QUERY)
    found = retrieve(corpus)
    assert [(each.id, each.text) for each in found] == [(each.chunk_id, each.text) for each in plain]
    assert [each.score for each in found] == pytest.approx([each.relevance for each in plain], abs=1e-5)
    (leave,) = [each for each in found if each.metadata["filename"] == "leave.md"]
    told = leave.metadata
    assert told["source"].startswith("file://")
    assert told["source"].endswith("/leave.md")
    assert (told["author"], told["year"], told["headings"]) == ("Ada", 2031, ["Leave"])
    assert (told["source_name"], told["path"]) == ("docs", "leave.md")
    start, end = told["span"]
    assert corpus.document(told["document_id"]).load()[start:end] == leave.text


def test_every_option_of_a_search_is_passed_on(corpus, retrieve):
    every = retrieve(corpus)
    assert len(retrieve(corpus, k=1)) == 1
    assert files(retrieve(corpus, filters=Filters(metadata=(("author", "Ada"),)))) == ["leave.md"]
    assert retrieve(corpus, filters=Filters(until=datetime.now(UTC) - timedelta(days=36_500))) == []
    least = sorted(each.score for each in every)[1]
    assert len(retrieve(corpus, min_relevance=least - 1e-6)) == 2
    assert set(files(retrieve(corpus, mode="text", level="document"))) == set(TEXTS)
    assert retrieve(corpus, mode="text", context="oak") == retrieve(corpus, mode="text")


def test_reranked_results_have_the_services_order_and_its_outage_is_an_error(corpus, retrieve, server):
    server.expect(lambda body: [0.9 if "draft" in text else 0.2 for text in body["texts"]])
    found = retrieve(corpus, rerank=True, k=1)
    assert (files(found), found[0].score) == (["draft.md"], pytest.approx(0.9))
    server.expect(error(500, "down"))
    with pytest.raises((TransientError, OutageError), match="500"):
        retrieve(corpus, rerank=True, k=1)


def test_awaited_results_are_the_same(corpus, retrieve):
    assert retrieve(corpus, awaited=True) == retrieve(corpus)


def test_awaited_searches_run_beside_other_tasks(workshop, retrieve):
    """A search within the event loop would keep every other request waiting."""
    threads = []

    class Watched(Corpus):
        def search(self, *given, **options):
            threads.append(threading.current_thread())
            return super().search(*given, **options)

    with Watched(workshop.settings) as corpus:
        retrieve(corpus, awaited=True)
    assert threads
    assert threading.main_thread() not in threads


def test_an_unknown_option_is_an_error_before_any_search(workshop):
    """Ignored, `reranker=True` would leave the second stage out without a word."""
    from parquetry.integrations.langchain import LangChainRetriever
    from parquetry.integrations.llamaindex import LlamaIndexRetriever

    with Corpus(workshop.settings) as corpus:
        for make in (lambda **given: LangChainRetriever(corpus=corpus, **given), partial(LlamaIndexRetriever, corpus)):
            assert make(rerank=False)
            with pytest.raises((TypeError, ValueError), match="reranker"):
                make(reranker=True)
        with pytest.raises(ValueError, match="mode"):
            LangChainRetriever(corpus=corpus, mode="fuzzy")


def test_options_of_one_call_win(workshop):
    from parquetry.integrations.langchain import LangChainRetriever

    with Corpus(workshop.settings) as corpus:
        retriever = LangChainRetriever(corpus=corpus, k=3)
        assert len(retriever.invoke(QUERY)) == 3
        assert len(retriever.invoke(QUERY, k=1)) == 1
        assert len(asyncio.run(retriever.ainvoke(QUERY, k=2))) == 2


def test_a_chain_with_a_model_gets_the_texts(workshop):
    """As in LangChain's own tutorials, with a scripted model."""
    from langchain_core.language_models.fake_chat_models import FakeListChatModel
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough

    from parquetry.integrations.langchain import LangChainRetriever

    seen = []
    with Corpus(workshop.settings) as corpus:
        retriever = LangChainRetriever(corpus=corpus, k=3)
        prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
        model = FakeListChatModel(responses=["Thirty."])
        chain = {"context": retriever, "question": RunnablePassthrough()} | prompt
        seen = chain.invoke(QUERY).to_string()
        assert (chain | model | StrOutputParser()).invoke(QUERY) == "Thirty."
    assert "Everybody has thirty days" in seen


def test_a_query_engine_gets_texts_and_places(workshop, monkeypatch):
    from llama_index.core import Settings, get_response_synthesizer
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine

    from parquetry.integrations.llamaindex import LlamaIndexRetriever

    # LlamaIndex asks for its default model even where it is given another one.
    monkeypatch.setattr(Settings, "_llm", MockLLM())
    with Corpus(workshop.settings) as corpus:
        synthesizer = get_response_synthesizer(llm=MockLLM(), response_mode="no_text")
        engine = RetrieverQueryEngine(LlamaIndexRetriever(corpus, k=2), synthesizer)
        answer = engine.query(QUERY)
    assert len(answer.source_nodes) == 2
    shown = answer.source_nodes[0].node.get_content(metadata_mode="llm")
    assert "chunk_id" not in shown
    assert "filename" in shown


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("langchain", "langchain_core", "langchain"), ("llamaindex", "llama_index", "llamaindex")],
)
def test_without_its_package_the_install_line_is_named(module, package, extra):
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from parquetry import SettingsError\n"
        f"try:\n    import parquetry.integrations.{module}\n"
        "except SettingsError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"pip install 'parquetry[{extra}]'" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["langchain", "llamaindex"])
def test_nothing_is_fetched(workshop, name):
    """Neither at import nor in a search: no tokenizer, no word list, no telemetry."""
    made = {
        "langchain": "from parquetry.integrations.langchain import LangChainRetriever\n"
        "found = LangChainRetriever(corpus=corpus).invoke('holiday')",
        "llamaindex": "from parquetry.integrations.llamaindex import LlamaIndexRetriever\n"
        "found = LlamaIndexRetriever(corpus).retrieve('holiday')",
    }[name]
    code = (
        "import sys\n"
        "def refuse(event, given):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo'):\n"
        "        raise SystemExit(f'{event} {given}')\n"
        "sys.addaudithook(refuse)\n"
        "from parquetry import Corpus\n"
        f"corpus = Corpus({workshop.settings.corpus.root!r})\n{made}\nprint(len(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "3"), done.stderr
