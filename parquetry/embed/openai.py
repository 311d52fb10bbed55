"""Embeddings from any service with OpenAI's API."""

from __future__ import annotations

import base64
import binascii
import copy
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from parquetry import ids
from parquetry.embed.base import SERVICE_WORST, Embedded, Embedder, Gate, Vectors, model_id, no_gate
from parquetry.embed.checks import blank, in_order, same_dimension, unit_rows
from parquetry.embed.prices import Price, service_price
from parquetry.errors import BrokenDocument, BudgetReached, SettingsError, TransientError
from parquetry.llm.batch_api import BatchService
from parquetry.llm.calls import Endpoint, RetryPolicy, endpoint, open_client, with_retry
from parquetry.llm.spending import Ledger, Usage
from parquetry.masking import excerpt
from parquetry.net.rate_limiter import host_of
from parquetry.settings.embedding import EmbeddingSettings
from parquetry.telemetry.tracing import model_request

if TYPE_CHECKING:
    import openai

_REVISION = 1
"""raised whenever the same text may get a different vector"""
_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_BYTES_PER_TOKEN = 3
"""fewer than in most texts, so that the estimate is usually an upper bound"""
_PROBE = "probe"

Format = Literal["base64", "float"]


class OpenAIEmbedder:
    """A model behind `/embeddings` of OpenAI or of a compatible service.

    Args:
        model: the service's name for it.
        settings: endpoint, key, batch sizes, tries, dimension, prefixes.
        retry_policy: number of tries and clock; None uses the settings' number of tries and the real clock.

    Raises:
        SettingsError: OpenAI itself is called without a key.
    """

    tokenizer_json: str | None = None

    def __init__(self, model: str, settings: EmbeddingSettings, retry_policy: RetryPolicy | None = None) -> None:
        self._model = model
        self._settings = settings
        self._where: Endpoint = endpoint(settings.base_url, settings.api_key, "embedding")
        self._patience = retry_policy or RetryPolicy(settings.attempts)
        self._dimension = settings.dimension or _DIMENSIONS.get(model)
        self._format: Format = "base64"
        self._proven = False
        self._lock = threading.RLock()
        self._client: openai.OpenAI | None = None
        self._unclaimed: dict[str, npt.NDArray[np.float32]] = {}
        self._ledger = Ledger()
        self._gate: Gate = no_gate

    def limited_by(self, gate: Gate) -> Embedder:
        """Return the same embedder, each of whose requests needs a permit for the service's host."""
        limited = copy.copy(self)
        limited._gate = gate
        return limited

    def accounted_by(self, ledger: Ledger) -> Embedder:
        """Return the same embedder with a ledger of its own; vectors already paid for are shared."""
        accounted = copy.copy(self)
        accounted._ledger = ledger
        return accounted

    @property
    def id(self) -> str:
        """Id of the model, without endpoint and key: the same model elsewhere returns the same vectors."""
        return _id(self._model, self.dimension, self._settings)

    @property
    def dimension(self) -> int:
        """Length of a vector; requested from the service if neither the settings nor the model's name determine it."""
        if self._dimension is None:
            self._prove()
        if self._dimension is None:
            raise SettingsError(
                f"{self._model} at {self._where.url} does not tell its dimension; set it in [embedding]"
            )
        return self._dimension

    @property
    def price_per_million_tokens(self) -> float | None:
        """US dollars: from the settings, or OpenAI's list price if OpenAI itself is called."""
        found = service_price(self._model, self._settings, official=self._where.official)
        return None if found is None else found.usd_per_million_tokens

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts of documents; texts that the service rejects are refused, all others embedded.

        Vectors paid for before a later request failed permanently are kept for the next call.

        Raises:
            TransientError: a request failed as often as the settings allow.
            SettingsError: the key, the quota or the model's name is invalid.
        """
        refused = blank(texts)
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        inputs = {row: self._settings.document_prefix + text for row, text in enumerate(texts) if row not in refused}
        kept = self._claim(inputs)
        for row, vector in kept.items():
            vectors[row] = vector
        waiting = {row: text for row, text in inputs.items() if row not in kept}
        done = set(kept)
        paid: list[int] = []
        unpaid: dict[int, str] = {}
        try:
            for batch in self._batches(waiting):
                self._embed_batch(batch, vectors, refused, done, paid)
        except BudgetReached as error:
            unpaid = {row: str(error) for row in waiting if row not in done and row not in refused}
        except (TransientError, SettingsError):
            self._keep({inputs[row]: vectors[row] for row in done})
            raise
        for row, reason in unit_rows(vectors).items():
            if row not in unpaid:
                refused.setdefault(row, reason)
        counts = [_estimate(inputs.get(row, "")) for row in range(len(texts))]
        return Embedded(vectors, sum(paid), refused, counts, unpaid)

    def embed_query(self, text: str) -> Vectors:
        """Embed one query: float32[dimension], L2-normalised; zeros for a blank text.

        Raises:
            TransientError: the request failed as often as the settings allow.
            SettingsError: the key, the quota or the model's name is invalid, or the service refuses this text.
        """
        query: Vectors = self.embed_queries([text])[0]
        return query

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries: float32[n, dimension], each row as `embed_query` returns it, with many queries per request.

        Raises:
            TransientError: a request failed as often as the settings allow.
            SettingsError: the key, the quota or the model's name is invalid, or the service refuses a text.
        """
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        inputs = {row: self._settings.query_prefix + text for row, text in enumerate(texts) if text.strip()}
        for batch in self._batches(inputs):
            try:
                vectors[list(batch)], _ = self._request(list(batch.values()))
            except BrokenDocument as error:
                which = "the query" if len(batch) == 1 else f"one of {len(batch)} queries"
                raise SettingsError(f"{which} cannot be embedded: {error.detail}") from error
        unit_rows(vectors)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return upper estimates of the tokens from the lengths in UTF-8."""
        return [_estimate(text) for text in texts]

    def batches(self) -> BatchService:
        """Return the service's batches."""
        return BatchService(self._where, self._patience, self._settings.timeout_seconds)

    def batch_request(self, text: str) -> Mapping[str, Any] | None:
        """Return the body of a request for the vector of one text.

        Returns:
            None for a text that is blank, or may be too long for the model: it is embedded the ordinary way.
        """
        sent = self._settings.document_prefix + text
        if not text.strip() or _estimate(sent) > self._settings.max_input_tokens:
            return None
        shape = {"dimensions": self._settings.dimension} if self._settings.dimension else {}
        return {"model": self._model, "input": sent, "encoding_format": self._format, **shape}

    def batch_vector(self, reply: Any) -> tuple[Vectors, int]:
        """Return the vector in a reply to a `batch_request`, and the billed tokens."""
        vectors = _vectors(reply, 1)
        same_dimension(vectors.shape[1], self.dimension, f"{self._model} at {self._where.url}")
        for reason in unit_rows(vectors).values():
            raise TransientError("bad-reply", reason)
        usage = reply.get("usage")
        counted = usage.get("total_tokens") if isinstance(usage, dict) else None
        return vectors[0], counted if isinstance(counted, int) else 0

    def _batches(self, inputs: dict[int, str]) -> Iterator[dict[int, str]]:
        """Yield as many texts per request as the limits allow; a text that may be too long for the model goes alone."""
        batch: dict[int, str] = {}
        tokens = 0
        for row, text in inputs.items():
            size = _estimate(text)
            if size > self._settings.max_input_tokens:
                yield {row: text}
                continue
            if batch and (len(batch) >= self._settings.batch_inputs or tokens + size > self._settings.batch_tokens):
                yield batch
                batch, tokens = {}, 0
            batch[row] = text
            tokens += size
        if batch:
            yield batch

    def _embed_batch(
        self, batch: dict[int, str], vectors: Vectors, refused: dict[int, str], done: set[int], paid: list[int]
    ) -> None:
        """Embed a batch into its rows, halving it as long as the service or the budget refuses it.

        Raises:
            BudgetReached: the budget does not even allow a single text; `paid` has the tokens of the others.
        """
        waiting = [list(batch)]
        while waiting:
            rows, form = waiting.pop(), self._format
            try:
                found, tokens = self._request([batch[row] for row in rows])
            except BudgetReached:
                if len(rows) == 1:
                    raise
                middle = len(rows) // 2
                waiting += [rows[middle:], rows[:middle]]
                continue
            except BrokenDocument as error:
                # Until a request succeeds, the fault may lie in all of them: a wrong model, dimension or format.
                self._prove()
                if form != self._format:
                    waiting.append(rows)
                elif len(rows) == 1:
                    refused[rows[0]] = str(error)
                else:
                    middle = len(rows) // 2
                    waiting += [rows[middle:], rows[:middle]]
                continue
            vectors[rows] = found
            done.update(rows)
            paid.append(tokens)

    def _prove(self) -> None:
        """Determine with one harmless word a request form that this service accepts, and its dimension.

        Raises:
            SettingsError: it refuses even that.
        """
        with self._lock:
            if self._proven:
                return
            formats: tuple[Format, ...] = ("base64", "float")
            for form in formats:
                self._format = form
                try:
                    self._request([_PROBE])
                except BrokenDocument as error:
                    refusal = error
                else:
                    return
            raise SettingsError(
                f"{self._where.url} refuses every request to {self._model}; check the model's name and "
                f"embedding.dimension ({refusal.detail})"
            ) from refusal

    def _request(self, inputs: list[str]) -> tuple[npt.NDArray[np.float32], int]:
        """Request vectors of texts, in order and unscaled, and return them with the billed tokens."""
        client = self._connected()
        shape = {"dimensions": self._settings.dimension} if self._settings.dimension else {}

        def post() -> Any:
            raw = client.embeddings.with_raw_response.create(
                model=self._model, input=inputs, encoding_format=self._format, extra_body=shape
            )
            # Read as plain data: the client's types take a second for what is parsed in milliseconds, and a service may
            # omit fields that they promise.
            return json.loads(raw.content)

        def one_try() -> tuple[npt.NDArray[np.float32], int]:
            with self._gate(host_of(self._where.url)):
                reply, paid = self._accounted(post, inputs)
            return _vectors(reply, len(inputs)), paid

        found, paid = with_retry(one_try, self._where, self._patience)
        with self._lock:
            if self._dimension is None:
                self._dimension = found.shape[1]
            same_dimension(found.shape[1], self._dimension, f"{self._model} at {self._where.url}")
            self._proven = True
        return found, paid

    def _accounted(self, post: Callable[[], Any], inputs: Sequence[str]) -> tuple[Any, int]:
        """Make one request within the budget: reserve its possible cost, then record the tokens that it used."""
        price = (self.price_per_million_tokens or 0.0) / 1e6
        reserved = price * sum(map(tokens_at_most, inputs))
        if reserved:
            self._ledger.begin(reserved, patient=True)
        used = Usage()
        try:
            with model_request("embeddings", self._model) as told:
                reply = post()
                usage = reply.get("usage") if isinstance(reply, dict) else None
                counted = usage.get("total_tokens") if isinstance(usage, dict) else None
                paid = counted if isinstance(counted, int) else sum(map(_estimate, inputs))
                told(paid, 0)
            used = Usage(1, paid, 0, paid * price)
        finally:
            if reserved:
                self._ledger.settle("embed", reserved, used)
            else:
                self._ledger.note("embed", used)
        return reply, paid

    def _connected(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                self._client = open_client(self._where, self._settings.timeout_seconds)
            return self._client

    def _keep(self, paid: dict[str, Any]) -> None:
        with self._lock:
            self._unclaimed.update((ids.text_hash(text), np.array(vector)) for text, vector in paid.items())

    def _claim(self, inputs: dict[int, str]) -> dict[int, Any]:
        """Return vectors paid for by a call that was interrupted."""
        with self._lock:
            if not self._unclaimed:
                return {}
            hashes = {row: ids.text_hash(text) for row, text in inputs.items()}
            found = {row: self._unclaimed[key] for row, key in hashes.items() if key in self._unclaimed}
            for row in found:
                self._unclaimed.pop(hashes[row], None)
            return found


def embedder_id(model: str, settings: EmbeddingSettings) -> str | None:
    """Return the id of `OpenAIEmbedder(model, settings)`; None if only the service knows the dimension."""
    dimension = settings.dimension or _DIMENSIONS.get(model)
    return None if dimension is None else _id(model, dimension, settings)


def price(model: str, settings: EmbeddingSettings) -> Price | None:
    """Return the price of `OpenAIEmbedder(model, settings)`; None if it is unknown.

    Raises:
        SettingsError: OpenAI itself is called without a key.
    """
    where = endpoint(settings.base_url, settings.api_key, "embedding")
    return service_price(model, settings, official=where.official)


def _id(model: str, dimension: int, settings: EmbeddingSettings) -> str:
    return model_id("openai", f"{model}/{_REVISION}", dimension, prefix=settings.document_prefix)


def tokens_at_most(text: str) -> int:
    """Return the maximum tokens of a text: one per byte, plus those that a service adds."""
    return int(len(text.encode("utf-8", "replace")) * SERVICE_WORST.tokens_per_byte) + SERVICE_WORST.tokens_per_text


def _estimate(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


def _vectors(reply: Any, expected: int) -> npt.NDArray[np.float32]:
    """Return float32[expected, dimension] in the order of the texts.

    Raises:
        TransientError: `bad-reply`, vectors are missing, duplicated, of different lengths or not numbers.
    """
    data = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise TransientError("bad-reply", f"the embedding service sent no data but {excerpt(str(reply), 200)!r}")
    places = in_order([_index(item) for item in data], expected)
    try:
        found = np.array([_numbers(item["embedding"]) for item in data], np.float32)
    except (TypeError, ValueError, KeyError, binascii.Error) as error:
        raise TransientError("bad-reply", f"the embedding service sent a vector that is none: {error}") from error
    if found.ndim != 2:
        raise TransientError("bad-reply", "the embedding service sent something else than one vector per text")
    ordered: npt.NDArray[np.float32] = found[places]
    return ordered


def _index(item: dict[str, Any]) -> int:
    index = item.get("index")
    return index if isinstance(index, int) else -1


def _numbers(value: Any) -> npt.NDArray[np.float32]:
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), "<f4")
    return np.asarray(value, np.float32)
