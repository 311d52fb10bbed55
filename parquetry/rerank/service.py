"""Rerank services: `POST <base_url>/rerank`, in the forms of Cohere, Jina, Voyage, TEI, vLLM and LiteLLM."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from parquetry.errors import BrokenDocument, ServiceRefused, SettingsError
from parquetry.llm.calls import Endpoint, RetryPolicy, open_client, with_retry
from parquetry.llm.rate_limit import rate_limit_of
from parquetry.llm.reply_forms import Ways
from parquetry.llm.spending import Usage
from parquetry.rerank.base import RerankScores, Scores
from parquetry.rerank.service_replies import Billed, billed, parsed, scaled, scores_of
from parquetry.settings.rerank import KEY_VARIABLE, RerankSettings
from parquetry.telemetry.tracing import model_request

if TYPE_CHECKING:
    import openai

RequestForm = Literal["top_n", "top_k", "texts"]
"""field that tells services apart: `top_n` of Cohere, Jina, vLLM and LiteLLM, `top_k` of Voyage, `texts` of TEI"""
FORMS = Ways[RequestForm]("top_n", "top_k", "texts")
_BATCH: Mapping[RequestForm, int] = {"top_n": 100, "top_k": 100, "texts": 32}
"""texts per request: what Cohere charges as one search, and what TEI takes unless it is started with another limit"""
_BYTES_PER_TOKEN = 3
"""fewer than in most texts, so that estimated tokens are usually an upper bound"""


class RerankService:
    """A reranker behind `/rerank` of a service. Thread-safe.

    Args:
        model: the service's name for it; TEI has one model and ignores the name.
        settings: address, key, scale of the scores, limits, prices.
        retry_policy: number of tries and clock; None uses the settings' number of tries and the real clock.

    Raises:
        SettingsError: no address is configured.

    Source: https://docs.cohere.com/reference/rerank, https://docs.voyageai.com/reference/reranker-api,
        https://huggingface.github.io/text-embeddings-inference/#/Text%20Embeddings%20Inference/rerank
    """

    def __init__(self, model: str, settings: RerankSettings, retry_policy: RetryPolicy | None = None) -> None:
        if settings.base_url is None:
            raise SettingsError(
                "no rerank service is configured: set base_url in [rerank] to the address below which it answers "
                "/rerank, for example http://localhost:8080"
            )
        self.id = f"service:{model}"
        self._model, self._settings = model, settings
        self._where = Endpoint(settings.base_url, settings.key or "none", KEY_VARIABLE)
        self._place = (self._where.url, model)
        self._retry_policy = retry_policy or RetryPolicy(settings.attempts)
        self._rate_limit = rate_limit_of(
            self._where.url, model, settings.requests_per_minute, settings.tokens_per_minute
        )
        self._lock = threading.Lock()
        self._client: openai.OpenAI | None = None

    def judge(self, query: str, texts: Sequence[str]) -> RerankScores:
        """Score how well each text answers the query.

        Raises:
            TransientError: the service failed, or answered something else, as often as the settings allow.
            ServiceRefused: it refuses the request, redirects it, or its scores have another scale.
        """
        if not texts:
            return RerankScores(np.zeros(0, np.float32))
        read = [_sendable(text[: self._settings.max_characters]) for text in texts]
        refusals: list[BrokenDocument] = []
        for form in FORMS.in_order(self._place):
            try:
                judged = self._judged(form, _sendable(query), read)
            except BrokenDocument as error:
                if not _is_about_form(error):
                    refusals = [error]
                    break
                refusals.append(error)
                continue
            FORMS.remember(self._place, form)
            return judged
        raise ServiceRefused(
            f"{self._where.url} does not rerank with {self._model}: {refusals[0].detail}; "
            "check rerank in [search] and the keys of [rerank]"
        ) from refusals[0]

    def _judged(self, form: RequestForm, query: str, texts: Sequence[str]) -> RerankScores:
        scores: list[Scores] = []
        usage = Usage()
        for batch in _batches(texts, self._settings.batch_texts or _BATCH[form]):
            found, used = self._request(form, query, batch)
            scores.append(found)
            usage += used
        return RerankScores(np.concatenate(scores), usage)

    def _request(self, form: RequestForm, query: str, texts: Sequence[str]) -> tuple[Scores, Usage]:
        """Return the scores of the texts of one request, and the usage of all its tries."""
        import httpx2

        client, url = self._connected(), self._where.url
        asked = _body(form, self._model, query, texts)
        expected = _estimate(query) * len(texts) + sum(map(_estimate, texts))
        usage = Usage()

        def one_try() -> Scores:
            nonlocal usage
            turn = self._rate_limit.take(expected)
            with model_request("rerank", self._model) as told:
                response = client.post("/rerank", cast_to=httpx2.Response, body=asked)
                reply = parsed(response.content, url)
                bill = billed(reply, response.headers, len(texts), expected)
                told(bill.tokens, 0)
            self._rate_limit.correct(turn, bill.tokens)
            usage += Usage(1, bill.tokens, 0, self._cost(bill))
            return scaled(scores_of(reply, len(texts), url), self._settings.scores, url)

        # The tries are made before their usage is read.
        scores = with_retry(one_try, self._where, self._retry_policy)
        return scores, usage

    def _cost(self, bill: Billed) -> float:
        """Return the US dollars of a request."""
        by_token = bill.tokens * self._settings.price_per_million_tokens / 1e6
        return by_token + bill.searches * self._settings.price_per_thousand_searches / 1e3

    def _connected(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                self._client = open_client(self._where, self._settings.timeout_seconds)
            return self._client


def _batches(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def _sendable(text: str) -> str:
    """Return a text that UTF-8 can express: a query may hold half a character."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _body(form: RequestForm, model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
    if form == "texts":
        return {"query": query, "texts": list(texts), "truncate": True}
    # Without the number, some services behind a gateway leave the worse ones out.
    return {"model": model, "query": query, "documents": list(texts), form: len(texts)}


def _is_about_form(error: BrokenDocument) -> bool:
    """Return True if a service refused a request because of a field that others take, or lacks theirs."""
    import openai

    refused = error.__cause__
    return isinstance(refused, openai.APIStatusError) and any(
        field in refused.response.text for field in ("top_n", "top_k", "texts")
    )


def _estimate(text: str) -> int:
    return -(-len(text.encode("utf-8")) // _BYTES_PER_TOKEN)
