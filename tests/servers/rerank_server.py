"""A real HTTP server on loopback with a rerank API, as one of six services answers it, scripted by a test."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.servers.chat_server import ChatServer, Reply

Scripted = Sequence[float] | Callable[[Any], Sequence[float]] | Reply
"""scores of the texts in their order, or a function that gives them for a body; or any other reply"""
TOKENS = 1234
"""tokens that each service reports for a request, if it reports any"""


@dataclass(frozen=True, slots=True)
class RerankApi:
    """A service as its documentation has it."""

    path: str
    fields: frozenset[str]
    """fields of a request; others are refused"""
    most_texts: int = 1000
    ignores: bool = False
    """True if it ignores fields that it does not know"""


_COMMON = frozenset({"model", "query", "documents", "top_n"})
APIS: Mapping[str, RerankApi] = {
    "cohere": RerankApi("/v2/rerank", _COMMON | {"max_tokens_per_doc", "priority"}),
    "jina": RerankApi("/v1/rerank", _COMMON | {"return_documents"}),
    "voyage": RerankApi(
        "/v1/rerank", frozenset({"model", "query", "documents", "top_k", "return_documents", "truncation"})
    ),
    "tei": RerankApi(
        "/rerank",
        frozenset({"query", "texts", "raw_scores", "return_text", "truncate", "truncation_direction"}),
        most_texts=32,
        ignores=True,
    ),
    "vllm": RerankApi("/v1/rerank", _COMMON, ignores=True),
    "litellm": RerankApi("/v1/rerank", _COMMON | {"return_documents", "rank_fields", "max_chunks_per_doc"}),
}


def reply_of(service: str, scores: Sequence[float], texts: Sequence[str]) -> Any:
    """Return the body of a correct reply, best first."""
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    results = [{"index": index, "relevance_score": scores[index]} for index in order]
    shown = [{**each, "document": {"text": texts[each["index"]]}} for each in results]
    units = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
    match service:
        case "cohere":
            return {"id": "07734bd2", "results": results, "meta": units}
        case "jina":
            return {"model": "m", "object": "list", "usage": {"total_tokens": TOKENS}, "results": shown}
        case "voyage":
            return {"object": "list", "data": results, "model": "m", "usage": {"total_tokens": TOKENS}}
        case "tei":
            return [{"index": each["index"], "score": each["relevance_score"]} for each in results]
        case "vllm":
            return {"id": "rerank-1", "model": "m", "usage": {"total_tokens": TOKENS}, "results": shown}
        case _:
            return {"id": "l", "results": results, "meta": {**units, "tokens": {"input_tokens": TOKENS}}}


class RerankServer(ChatServer):
    """Answer `POST <base_url>/rerank` while the `with` block lasts; requests beyond the script fail the test.

    A request that the service itself would refuse is refused in its words, and uses nothing of the script.

    Args:
        service: key of `APIS`.
        replies: replies in order; scores make a correct one.
        key: key that has to be sent; "" for none.
    """

    def __init__(self, service: str, replies: Sequence[Scripted], key: str = "") -> None:
        super().__init__([])
        self._service, self._api, self._key = service, APIS[service], key
        self._scripted = list(replies)
        self.refused: list[Any] = []
        """bodies that the service refused"""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self._api.path.removesuffix('/rerank')}"

    def expect(self, *replies: Scripted) -> None:
        """Add to the script."""
        self._scripted += replies

    def __exit__(self, *gone: Any) -> None:
        self._waiting = list(self._scripted)
        super().__exit__(*gone)

    def _reply_to(self, path: str, content: bytes, key: str) -> Reply:
        body = json.loads(content)
        if path != self._api.path:
            return self._failed(f"{path}: {body}")
        if self._key and key != f"Bearer {self._key}":
            return self._failed(f"key {key!r}")
        refusal = self._refusal(body)
        with self._lock:
            if refusal is not None:
                self.refused.append(body)
                return refusal
            self.bodies.append(body)
            self.keys.append(key)
            reply = self._scripted.pop(0) if self._scripted else None
        if reply is None:
            return self._failed(f"{path}: {body}")
        if isinstance(reply, Reply):
            return reply
        texts = body.get("documents") or body["texts"]
        if callable(reply):
            reply = reply(body)
        if len(texts) != len(reply):
            return self._failed(f"{len(texts)} texts, not {len(reply)}")
        headers = {"x-compute-tokens": str(TOKENS)} if self._service == "tei" else {}
        return Reply(200, reply_of(self._service, reply, texts), headers)

    def _refusal(self, body: Any) -> Reply | None:
        texts = body.get("texts" if self._service == "tei" else "documents")
        unknown = sorted(set(body) - self._api.fields)
        if self._service == "tei" and texts is None:
            said = b"Failed to deserialize the JSON body into the target type: missing field `texts` at line 1"
            return Reply(422, said, {"Content-Type": "text/plain"})
        if texts is None:
            return Reply(422, {"detail": [{"type": "missing", "loc": ["body", "documents"], "msg": "Field required"}]})
        if unknown and not self._api.ignores:
            return Reply(400, {"detail": f"Argument '{unknown[0]}' is not supported by our API"})
        if len(texts) > self._api.most_texts:
            said = f"batch size {len(texts)} > maximum allowed batch size {self._api.most_texts}"
            return Reply(413, {"error": said, "error_type": "Validation"})
        return None

    def _failed(self, mistake: str) -> Reply:
        with self._lock:
            self._unexpected.append(mistake)
        return Reply(500, {"error": {"message": f"unscripted: {mistake}"}})
