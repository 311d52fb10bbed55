"""Models exported to ONNX: finding and reading their files, opening a session, preparing inputs."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from parquetry import ids
from parquetry.errors import MissingExtra, SettingsError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""inputs of a text that a model may have"""
DATA_BESIDE = "{name}?data*"
"""pattern for the files in which a large `.onnx` file has its weights"""
_MODEL_PLACES = ("model.onnx", "onnx/model.onnx")
_DEFAULT_MAX_TOKENS = 512
_NO_LIMIT = 1_000_000
"""threshold for no limit: tokenizers without a limit say 10^30"""
_ERRORS_ONLY = 3
_BATCH_TOKENS = 2048
"""padded tokens per run of a model; more are no faster and take more memory"""


def model_file(root: Path) -> Path:
    """Find `model.onnx`, `onnx/model.onnx`, or the one other `.onnx` file.

    Raises:
        SettingsError: there is none, or more than one.
    """
    others = sorted(file.relative_to(root).as_posix() for file in [*root.glob("*.onnx"), *root.glob("onnx/*.onnx")])
    usual = usual_model(others)
    if usual is not None:
        return root / usual
    names = ", ".join(each.rpartition("/")[2] for each in others)
    found = f"; it holds {names}: name one of them model.onnx" if others else ""
    raise SettingsError(f"the model's folder {root} has no model.onnx{found}")


def usual_model(paths: Iterable[str]) -> str | None:
    """Return `model.onnx`, `onnx/model.onnx`, or the one other `.onnx` file there; None if several or none are left.

    Args:
        paths: paths of files, relative to the folder of the model.
    """
    there = [path for path in paths if path.endswith(".onnx") and path.rpartition("/")[0] in {"", "onnx"}]
    known = [place for place in _MODEL_PLACES if place in there]
    return known[0] if known else there[0] if len(there) == 1 else None


def file_hash(file: Path) -> str:
    """Return the `content_hash` of a file, computed again only when its size or time has changed."""
    properties = file.stat()
    return _hash_of(file, properties.st_size, properties.st_mtime_ns)


@functools.lru_cache(maxsize=32)
def _hash_of(file: Path, size: int, modified_ns: int) -> str:  # noqa: ARG001 - they identify a changed file
    with file.open("rb") as stream:
        return ids.stream_hash(stream)


def tokenizer_file(root: Path, model: Path) -> Path:
    """Find `tokenizer.json` in the folder or beside the model.

    Raises:
        SettingsError: there is none.
    """
    for file in (root / "tokenizer.json", model.parent / "tokenizer.json"):
        if file.is_file():
            return file
    raise SettingsError(f"the model's folder {root} has no tokenizer.json; export the model with its fast tokenizer")


def max_tokens(transformer: dict[str, Any], tokenizer: dict[str, Any], config: dict[str, Any]) -> int:
    """Return the longest input of a model in tokens, special tokens included.

    Args:
        transformer: content of `sentence_bert_config.json`.
        tokenizer: content of `tokenizer_config.json`.
        config: content of `config.json`.
    """
    stated = (transformer.get("max_seq_length"), tokenizer.get("model_max_length"))
    limits = [int(limit) for limit in stated if limit and limit < _NO_LIMIT]
    if not limits and config.get("max_position_embeddings"):
        # RoBERTa and its relatives count positions from the padding id on.
        offset = int(config.get("pad_token_id") or 0) + 1 if config.get("type_vocab_size") == 1 else 0
        limits = [int(config["max_position_embeddings"]) - offset]
    return min(limits, default=_DEFAULT_MAX_TOKENS)


def read_json(file: Path, default: Any = None) -> Any:
    """Read a JSON file that may be missing.

    Args:
        file: holds JSON of the type of `default`.
        default: returned for a missing file; None for an empty object.

    Raises:
        SettingsError: it is damaged, or holds another type.
    """
    try:
        value = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {} if default is None else default
    except (OSError, ValueError) as error:
        raise SettingsError(f"the model's file {file} cannot be read: {error}") from error
    expected = dict if default is None else type(default)
    if not isinstance(value, expected):
        raise SettingsError(f"the model's file {file} does not hold a JSON {expected.__name__}")
    return cast(Any, value)


def need_runtime(need: str) -> None:
    """Check that models can run here.

    Args:
        need: what needs the model, for the message: `the embedder onnx:models/e5`.

    Raises:
        MissingExtra: onnxruntime is not installed.
    """
    try:
        import onnxruntime  # noqa: F401 - looked for
    except ImportError as error:
        raise MissingExtra("onnx", need) from error


def open_session(model: Path, need: str) -> Any:
    """Open a model to run on this machine's processors.

    Args:
        model: the `.onnx` file.
        need: what needs the model, for the message: `the embedder onnx:models/e5`.

    Raises:
        MissingExtra: onnxruntime is not installed.
        SettingsError: the file is not a runnable model.
    """
    need_runtime(need)
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as failures

    onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    # Idle threads that spin would take processor time from the workers that extract documents.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except (
        failures.Fail,
        failures.InvalidArgument,
        failures.InvalidGraph,
        failures.InvalidProtobuf,
        failures.NoSuchFile,
        failures.NotImplemented,
        failures.RuntimeException,
    ) as error:
        raise SettingsError(f"the model {model} cannot be loaded: {error}") from error


def input_types(session: Any, folder: str) -> dict[str, type[np.signedinteger[Any]]]:
    """Return the NumPy type of each input of the model.

    Raises:
        SettingsError: it requires an input that a text does not have.
    """
    found = {each.name: np.int32 if "int32" in each.type else np.int64 for each in session.get_inputs()}
    unknown = sorted(set(found) - set(INPUTS))
    if unknown:
        raise SettingsError(f"the model in {folder} wants inputs that a text has not: {', '.join(unknown)}")
    return found


def plain_tokenizer(file: Path) -> str:
    """Serialise a tokenizer without the truncation and padding that exports often leave in it.

    Raises:
        SettingsError: the file cannot be read.
    """
    try:
        described = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"the model's file {file} cannot be read: {error}") from error
    return json.dumps(described | {"truncation": None, "padding": None}, ensure_ascii=False)


def load_tokenizer(described: str, file: Path) -> Tokenizer:
    """Load a serialised tokenizer.

    Args:
        described: as returned by `plain_tokenizer`.
        file: its file, for the message.

    Raises:
        SettingsError: the text is not a tokenizer.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(described)
    except Exception as error:  # the library raises nothing more specific
        raise SettingsError(f"the model's file {file} is no tokenizer: {error}") from error
    # A document that quotes control tokens must not be able to inject them.
    tokenizer.encode_special_tokens = True
    return tokenizer


def by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Batch texts of similar length, to minimise padding.

    Args:
        lengths: tokens of each text.

    Yields:
        0-based positions of the texts of a batch, the longest first.
    """
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda each: -lengths[each]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def padded(
    ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]], pad_id: int
) -> dict[str, npt.NDArray[np.int64]]:
    """Each of `INPUTS` as int64[texts, tokens of the longest]; the mask is 1 for a token and 0 for padding at the end.

    Args:
        ids: tokens of each text.
        types: for each token, its text of a pair, 0 or 1.
        pad_id: token that fills shorter texts.
    """
    token_ids = np.full((len(ids), max(map(len, ids))), pad_id, np.int64)
    mask, token_types = np.zeros_like(token_ids), np.zeros_like(token_ids)
    for row, (text, kinds) in enumerate(zip(ids, types, strict=True)):
        token_ids[row, : len(text)] = text
        token_types[row, : len(text)] = kinds
        mask[row, : len(text)] = 1
    return dict(zip(INPUTS, (token_ids, mask, token_types), strict=True))
