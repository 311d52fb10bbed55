"""How an exported sentence-transformers model wants to be used, read from the files beside it."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from knowledge import ids
from knowledge.errors import SettingsError

Pooling = Literal["cls", "mean", "max", "last"]
"""how the vectors of a text's tokens become one"""

_MODEL_PLACES = ("model.onnx", "onnx/model.onnx")
_POOLING_FLAGS: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    # Differs from the mean by a factor, which scaling to length one takes away.
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
_DEFAULT_MAX_TOKENS = 512
_NO_LIMIT = 1_000_000
"""tokenizers without a limit say 10^30"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to do with a model's inputs and outputs."""

    model: Path
    tokenizer: Path
    family: str
    """the architecture, for the id: `bert`"""
    pooling: Pooling
    max_tokens: int
    """longest input, special tokens included"""
    lower_case: bool
    """whether texts are lower-cased before the tokenizer sees them"""
    pad_id: int
    dimension: int | None
    """length of the vectors as far as the files tell"""
    document_prompt: str
    """put before documents unless the settings say otherwise"""
    query_prompt: str
    """put before queries unless the settings say otherwise"""

    def content_hash(self) -> str:
        """Eight hex digits over the weights, the tokenizer and all that decides what is made of them."""
        data = sorted(self.model.parent.glob(f"{self.model.name}?data*"))
        return ids.settings_hash(
            {
                "files": [_file_hash(file) for file in (self.model, *data, self.tokenizer)],
                "pooling": self.pooling,
                "max_tokens": self.max_tokens,
                "lower_case": self.lower_case,
            }
        )


def read_recipe(folder: str) -> Recipe:
    """The recipe of the model in a folder.

    Args:
        folder: holds `model.onnx` (or `onnx/model.onnx`, or one other `.onnx` file) and `tokenizer.json`; may hold what
            sentence-transformers writes: `modules.json`, `1_Pooling/config.json`, `sentence_bert_config.json`,
            `config_sentence_transformers.json`, `tokenizer_config.json`, `config.json`.

    Raises:
        SettingsError: a file is missing or damaged, or the model needs a step that is not supported.

    Source: https://sbert.net/docs/sentence_transformer/usage/custom_models.html
    """
    root = Path(folder)
    if not root.is_dir():
        raise SettingsError(f"corpus.embedder names the folder {folder}, which does not exist")
    model = _model_file(root)
    config = _read(root / "config.json")
    transformer = _read(root / "sentence_bert_config.json")
    pooling_config = _read(_pooling_folder(root) / "config.json")
    prompts = _read(root / "config_sentence_transformers.json")
    named = prompts.get("prompts") or {}
    default = named.get(prompts.get("default_prompt_name"), "")
    return Recipe(
        model=model,
        tokenizer=_tokenizer_file(root, model),
        family=str(config.get("model_type") or "model"),
        pooling=_pooling(pooling_config, root),
        max_tokens=_max_tokens(transformer, _read(root / "tokenizer_config.json"), config),
        lower_case=bool(transformer.get("do_lower_case")),
        pad_id=int(config.get("pad_token_id") or 0),
        dimension=pooling_config.get("word_embedding_dimension")
        or pooling_config.get("embedding_dimension")
        or config.get("hidden_size"),
        document_prompt=named.get("document") or named.get("passage") or default,
        query_prompt=named.get("query") or default,
    )


def _model_file(root: Path) -> Path:
    for place in _MODEL_PLACES:
        if (root / place).is_file():
            return root / place
    others = sorted([*root.glob("*.onnx"), *root.glob("onnx/*.onnx")])
    if len(others) == 1:
        return others[0]
    found = f"; it holds {', '.join(file.name for file in others)}: name one of them model.onnx" if others else ""
    raise SettingsError(f"the embedder's folder {root} has no model.onnx{found}")


def _tokenizer_file(root: Path, model: Path) -> Path:
    for file in (root / "tokenizer.json", model.parent / "tokenizer.json"):
        if file.is_file():
            return file
    raise SettingsError(f"the embedder's folder {root} has no tokenizer.json; export the model with its fast tokenizer")


def _pooling_folder(root: Path) -> Path:
    """Where `modules.json` says that pooling is configured; checks that there is no step we do not do."""
    folder = root / "1_Pooling"
    for module in _read(root / "modules.json", []):
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


def _max_tokens(transformer: dict[str, Any], tokenizer: dict[str, Any], config: dict[str, Any]) -> int:
    stated = (transformer.get("max_seq_length"), tokenizer.get("model_max_length"))
    limits = [int(limit) for limit in stated if limit and limit < _NO_LIMIT]
    if not limits and config.get("max_position_embeddings"):
        # RoBERTa and its kin count positions from the padding id on.
        offset = int(config.get("pad_token_id") or 0) + 1 if config.get("type_vocab_size") == 1 else 0
        limits = [int(config["max_position_embeddings"]) - offset]
    return min(limits, default=_DEFAULT_MAX_TOKENS)


def _read(file: Path, default: Any = None) -> Any:
    try:
        value = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {} if default is None else default
    except (OSError, ValueError) as error:
        raise SettingsError(f"the embedder's file {file} cannot be read: {error}") from error
    expected = dict if default is None else type(default)
    if not isinstance(value, expected):
        raise SettingsError(f"the embedder's file {file} does not hold a JSON {expected.__name__}")
    return cast(Any, value)


def _file_hash(file: Path) -> str:
    properties = file.stat()
    return _hash_of(file, properties.st_size, properties.st_mtime_ns)


@functools.lru_cache(maxsize=32)
def _hash_of(file: Path, size: int, modified_ns: int) -> str:  # noqa: ARG001 - they tell a changed file
    with file.open("rb") as stream:
        return ids.stream_hash(stream)
