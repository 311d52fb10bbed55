"""Exported cross-encoders, run on this machine's processors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from parquetry.embed.hub import ModelPlace, located
from parquetry.embed.onnx_model import (
    by_length,
    input_types,
    load_tokenizer,
    max_tokens,
    model_file,
    open_session,
    padded,
    plain_tokenizer,
    read_json,
    tokenizer_file,
)
from parquetry.errors import SettingsError
from parquetry.rerank.base import RerankScores, Scores
from parquetry.settings.hub import NO_HUB, HubSettings, hub_model


class CrossEncoder:
    """A model that reads query and text as a pair, exported to ONNX, with its tokenizer, in a local folder.

    A pair longer than the model's input loses the end of its longer part, as in the models' training. The model's first
    output is one logit per pair, or two for "no" and "yes"; either becomes the probability of "yes".

    Args:
        name: a model of the hub, or a folder that holds `model.onnx` (or `onnx/model.onnx`, or one other `.onnx` file)
            and `tokenizer.json`; may hold `config.json` and `tokenizer_config.json`.
        hub: settings for a model of the hub.

    Raises:
        MissingExtra: onnxruntime is not installed.
        SettingsError: a file is missing or damaged, or the model does not score pairs.
        TransientError: the hub cannot be reached.

    Source: https://sbert.net/docs/cross_encoder/usage/usage.html
    """

    def __init__(self, name: str, hub: HubSettings = NO_HUB) -> None:
        on_hub = hub_model(name)
        place = ModelPlace(Path(name)) if on_hub is None else located(on_hub, hub)
        root, folder = place.folder, str(place.folder)
        if not root.is_dir():
            raise SettingsError(f"search.rerank names the folder {folder}, which does not exist")
        model = place.file or model_file(root)
        tokenizer = tokenizer_file(root, model)
        config = read_json(root / "config.json")
        self.id = f"onnx:{root.name if on_hub is None else replace(on_hub, revision=place.commit)}"
        self._folder = folder
        self._pad_id = int(config.get("pad_token_id") or 0)
        self._session = open_session(model, f"the reranker onnx:{name}")
        self._inputs = input_types(self._session, folder)
        self._output = self._session.get_outputs()[0].name
        self._tokenizer = load_tokenizer(plain_tokenizer(tokenizer), tokenizer)
        self._tokenizer.enable_truncation(max_tokens({}, read_json(root / "tokenizer_config.json"), config))
        # Any problem of the model shows before the first search.
        self.judge("a", ["b"])

    def judge(self, query: str, texts: Sequence[str]) -> RerankScores:
        """Return the probability that each text answers the query."""
        pairs = self._tokenizer.encode_batch_fast([(query, text) for text in texts])
        found = np.zeros(len(texts), np.float32)
        for batch in by_length([len(pair.ids) for pair in pairs]):
            given = padded([pairs[row].ids for row in batch], [pairs[row].type_ids for row in batch], self._pad_id)
            feed = {name: given[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
            (output,) = self._session.run([self._output], feed)
            found[batch] = self._probabilities(np.asarray(output, np.float32), len(batch))
        return RerankScores(found)

    def _probabilities(self, output: npt.NDArray[np.float32], pairs: int) -> Scores:
        rows = output.reshape(pairs, -1) if output.ndim in {1, 2} and len(output) == pairs else None
        if rows is None or rows.shape[1] not in {1, 2}:
            raise SettingsError(
                f"the model in {self._folder} gives {self._output} of shape {output.shape} for {pairs} pairs of texts; "
                "a cross-encoder gives one score for each, or two classes"
            )
        if not np.isfinite(rows).all():
            raise SettingsError(f"the model in {self._folder} gives scores that are no numbers; choose another export")
        # The softmax of two classes is the sigmoid of their difference.
        logits = rows[:, -1] - (rows[:, 0] if rows.shape[1] == 2 else 0)
        probabilities: Scores = np.exp(-np.logaddexp(0, -logits)).astype(np.float32)
        return probabilities
