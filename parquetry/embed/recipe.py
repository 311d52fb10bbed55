"""Recipe of an exported sentence-transformers model, read from the files beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from parquetry import ids
from parquetry.embed.onnx_model import DATA_BESIDE, file_hash, max_tokens, model_file, read_json, tokenizer_file
from parquetry.errors import SettingsError

Pooling = Literal["cls", "mean", "max", "last"]
"""method of combining the vectors of a text's tokens"""

_POOLING_FLAGS: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    # Differs from the mean by a factor, which scaling to unit length removes.
    "pooling_mode_mean_sqrt_len_tokens": "mean",
    "pooling_mode_lasttoken": "last",
}
_POOLING_NAMES: dict[str, Pooling] = {
    "cls": "cls",
    "mean": "mean",
    "max": "max",
    "mean_sqrt_len_tokens": "mean",
    "lasttoken": "last",
}
_KNOWN_MODULES = {"Transformer", "Pooling", "Normalize"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """Treatment of a model's inputs and outputs."""

    model: Path
    tokenizer: Path
    family: str
    """architecture, for the id: `bert`"""
    pooling: Pooling
    max_tokens: int
    """longest input in tokens, special tokens included"""
    lower_case: bool
    """True if texts are lower-cased before tokenizing"""
    pad_id: int
    dimension: int | None
    """length of the vectors; None if the files do not state it"""
    document_prompt: str
    """prefix of documents unless the settings replace it"""
    query_prompt: str
    """prefix of queries unless the settings replace it"""

    def content_hash(self) -> str:
        """Return eight hex digits over the weights, the tokenizer and the settings of their use."""
        data = sorted(self.model.parent.glob(DATA_BESIDE.format(name=self.model.name)))
        return ids.settings_hash(
            {
                "files": [file_hash(file) for file in (self.model, *data, self.tokenizer)],
                "pooling": self.pooling,
                "max_tokens": self.max_tokens,
                "lower_case": self.lower_case,
            }
        )


def read_recipe(folder: str, chosen: Path | None = None) -> Recipe:
    """Read the recipe of the model in a folder.

    Args:
        folder: holds `model.onnx` (or `onnx/model.onnx`, or one other `.onnx` file) and `tokenizer.json`; may hold the
            files that sentence-transformers writes: `modules.json`, `1_Pooling/config.json`,
            `sentence_bert_config.json`, `config_sentence_transformers.json`, `tokenizer_config.json`, `config.json`.
        chosen: the `.onnx` file of several; None for the usual one.

    Raises:
        SettingsError: a file is missing or damaged, or the model needs a step that is not supported.

    Source: https://sbert.net/docs/sentence_transformer/usage/custom_models.html
    """
    root = Path(folder)
    if not root.is_dir():
        raise SettingsError(f"the folder {folder} of an `onnx:` embedder does not exist")
    model = chosen or model_file(root)
    config = read_json(root / "config.json")
    transformer = read_json(root / "sentence_bert_config.json")
    pooling_config = read_json(_pooling_folder(root) / "config.json")
    prompts = read_json(root / "config_sentence_transformers.json")
    named = prompts.get("prompts") or {}
    default = named.get(prompts.get("default_prompt_name"), "")
    return Recipe(
        model=model,
        tokenizer=tokenizer_file(root, model),
        family=str(config.get("model_type") or "model"),
        pooling=_pooling(pooling_config, root),
        max_tokens=max_tokens(transformer, read_json(root / "tokenizer_config.json"), config),
        lower_case=bool(transformer.get("do_lower_case")),
        pad_id=int(config.get("pad_token_id") or 0),
        dimension=pooling_config.get("word_embedding_dimension")
        or pooling_config.get("embedding_dimension")
        or config.get("hidden_size"),
        document_prompt=named.get("document") or named.get("passage") or default,
        query_prompt=named.get("query") or default,
    )


def _pooling_folder(root: Path) -> Path:
    """Return the folder of the pooling configuration in `modules.json`; reject unsupported steps."""
    folder = root / "1_Pooling"
    for module in read_json(root / "modules.json", []):
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind not in _KNOWN_MODULES:
            raise SettingsError(
                f"the model in {root} has a step of type {kind} after its transformer, which is not supported; "
                f"supported are {', '.join(sorted(_KNOWN_MODULES))}"
            )
        if kind == "Pooling":
            folder = root / str(module.get("path", ""))
    return folder


def _pooling(config: dict[str, Any], root: Path) -> Pooling:
    wanted = config.get("pooling_mode")
    if isinstance(wanted, str):
        chosen = [_POOLING_NAMES.get(wanted)]
    else:
        flags = [flag for flag, value in config.items() if flag.startswith("pooling_mode_") and value is True]
        chosen = [_POOLING_FLAGS.get(flag) for flag in flags] or ["mean"]
    if len(chosen) != 1 or chosen[0] is None:
        raise SettingsError(f"the model in {root} pools its tokens in a way that is not supported: {config}")
    return chosen[0]
