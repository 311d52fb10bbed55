"""Client of the Hugging Face Hub: fetches the files that a model needs, and compares them with the hub's checksums."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

from parquetry.embed.hub import RECORD, FetchedFiles, HubCache, ModelPlace
from parquetry.embed.hub_errors import translated
from parquetry.embed.hub_session import MEBIBYTE, MOST_TRANSFERS, held_back
from parquetry.embed.onnx_model import DATA_BESIDE, file_hash, need_runtime, usual_model
from parquetry.errors import SettingsError, TransientError
from parquetry.settings.hub import HubModel, HubSettings, is_commit

log = logging.getLogger("parquetry")

_DESCRIPTIONS = re.compile(
    r"(?:tokenizer|config|tokenizer_config|modules|sentence_bert_config|config_sentence_transformers)\.json"
    r"|onnx/tokenizer\.json|\w+/config\.json"
)
"""files beside a model that `read_recipe` reads; nothing else is fetched, above all no code"""
_MOST_DESCRIPTION_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _RemoteFile:
    """A file of the hub, as its listing describes it."""

    path: str
    size: int
    """bytes"""
    digest: str
    """SHA-256, or the SHA-1 that Git gives a file, in hex"""
    is_git: bool
    """True for Git's SHA-1"""

    def is_at(self, file: Path) -> bool:
        """Return True if a file has this content."""
        if not file.is_file() or file.stat().st_size != self.size:
            return False
        # Git's own checksum of a file; nothing else is told about small ones.
        digest = hashlib.sha1(b"blob %d\0" % self.size) if self.is_git else hashlib.sha256()  # noqa: S324
        with file.open("rb") as stream:
            while block := stream.read(MEBIBYTE):
                digest.update(block)
        return digest.hexdigest() == self.digest


def fetch(model: HubModel, hub: HubSettings, cache: HubCache) -> ModelPlace:
    """Fetch the files of a model into the cache, and pin its revision there.

    Raises:
        MissingExtra: the client of the hub or onnxruntime is not installed.
        SettingsError: the hub does not give the model out, it has no `.onnx` file to take, or the cache cannot be
            written.
        TransientError: the hub cannot be reached, or its answer is not what it should be.
    """
    from filelock import FileLock

    need_runtime(f"the model onnx:{model}")
    with translated(model, hub):
        # A private model in the user's cache is the user's alone; one in a folder of the settings may be for others.
        cache.root.mkdir(0o700 if hub.cache is None else 0o777, parents=True, exist_ok=True)
        with FileLock(cache.root / "lock"), held_back(model, hub) as library:
            # Another process may have fetched it meanwhile.
            found = cache.find()
            if found is not None:
                return found
            commit, files = _listed(library, model, hub)
            usual = usual_model(files)
            chosen = _chosen(model, usual, files)
            wanted = _wanted(chosen, files)
            _check_sizes(model, hub, wanted)
            folder = cache.folder(commit)
            for file in wanted:
                _fetch_file(library, model, hub, commit, file, folder)
            shutil.rmtree(folder / ".cache", ignore_errors=True)
            _write_record(cache, FetchedFiles(model.repository, commit, usual if usual == chosen else None, {}), wanted)
            if not is_commit(model.asked):
                _write(cache.pin, commit)
                log.info("onnx:%s is revision %s from now on", model, commit)
            return ModelPlace(folder, folder / chosen, commit)


def _listed(library: Any, model: HubModel, hub: HubSettings) -> tuple[str, dict[str, _RemoteFile]]:
    """Return the commit behind the revision, and its files by path."""
    client = library.HfApi(endpoint=hub.address, token=hub.key or False, library_name="parquetry")
    answer = client.model_info(model.repository, revision=model.asked, files_metadata=True, timeout=hub.timeout_seconds)
    commit = answer.sha
    if not isinstance(commit, str) or not is_commit(commit) or (is_commit(model.asked) and commit != model.asked):
        raise TransientError("bad-reply", f"{hub.address} answers for onnx:{model} with the revision {commit!r}")
    files = {}
    for each in answer.siblings or ():
        known = each.lfs.sha256 if each.lfs is not None else each.blob_id
        size = each.lfs.size if each.lfs is not None else each.size
        if isinstance(size, int) and isinstance(known, str):
            files[each.rfilename] = _RemoteFile(each.rfilename, size, known.lower(), each.lfs is None)
    return commit, files


def _chosen(model: HubModel, usual: str | None, files: dict[str, _RemoteFile]) -> str:
    """Return the path of the `.onnx` file to take."""
    chosen = model.file or usual
    exports = sorted(path for path in files if path.endswith(".onnx"))
    if chosen is None and not exports:
        raise SettingsError(
            f"onnx:{model} has no .onnx file; choose a model that is exported to ONNX, or export it into a folder"
        )
    if chosen is None or chosen not in files:
        named = HubModel(model.repository, model.revision, exports[0]) if exports else None
        choices = f"; it has {', '.join(exports)}: name one, as onnx:{named}" if named else ""
        lack = f"no {chosen}" if chosen is not None else "no model.onnx and no onnx/model.onnx"
        raise SettingsError(f"onnx:{model} has {lack}{choices}")
    if "tokenizer.json" not in files and "onnx/tokenizer.json" not in files:
        raise SettingsError(f"onnx:{model} has no tokenizer.json; choose an export with its fast tokenizer")
    return chosen


def _wanted(chosen: str, files: dict[str, _RemoteFile]) -> list[_RemoteFile]:
    """Return the files to fetch: the model, its weights if they are apart, and what describes it."""
    beside = DATA_BESIDE.format(name=chosen)
    return [
        file
        for path, file in sorted(files.items())
        if path == chosen
        or (fnmatchcase(path, beside) and path.rpartition("/")[0] == chosen.rpartition("/")[0])
        or _DESCRIPTIONS.fullmatch(path)
    ]


def _check_sizes(model: HubModel, hub: HubSettings, wanted: Sequence[_RemoteFile]) -> None:
    total = sum(file.size for file in wanted)
    if total > hub.max_bytes:
        raise SettingsError(f"onnx:{model} has {total:,} bytes, more than max_bytes in [hub], {hub.max_bytes:,}")
    for file in wanted:
        if _DESCRIPTIONS.fullmatch(file.path) and file.size > _MOST_DESCRIPTION_BYTES:
            raise SettingsError(
                f"{file.path} of onnx:{model} has {file.size:,} bytes; the limit is {_MOST_DESCRIPTION_BYTES:,}"
            )


def _fetch_file(library: Any, model: HubModel, hub: HubSettings, commit: str, file: _RemoteFile, folder: Path) -> None:
    here = folder / file.path
    if file.is_at(here):
        return
    here.unlink(missing_ok=True)
    library.hf_hub_download(
        model.repository,
        file.path,
        revision=commit,
        local_dir=folder,
        endpoint=hub.address,
        token=hub.key or False,
        etag_timeout=hub.timeout_seconds,
        library_name="parquetry",
        tqdm_class=_meter(file),
        # Copies of other programs are not looked for: nobody has compared them with a checksum.
        cache_dir=folder / ".cache",
    )
    if not file.is_at(here):
        here.unlink(missing_ok=True)
        raise TransientError(
            "bad-reply",
            f"{file.path} of onnx:{model} does not have the checksum that {hub.address} states; it was deleted: run it "
            "again",
        )


def _meter(file: _RemoteFile) -> type:
    """Return a progress bar that shows nothing, and ends a transfer that sends a file again and again."""

    class Meter:
        def __init__(self, *_: object, **__: object) -> None:
            self._bytes = 0

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def update(self, more: float | None = 1) -> None:
            # Less than zero: the transfer broke off and begins anew.
            self._bytes += max(0, int(more or 0))
            if self._bytes > MOST_TRANSFERS * file.size:
                raise TransientError(
                    "bad-reply", f"{file.path} has more bytes than the {file.size:,} of the hub's list"
                )

    return Meter


def _write_record(cache: HubCache, made: FetchedFiles, wanted: Sequence[_RemoteFile]) -> None:
    """Add files to the record of their revision."""
    folder, before = cache.folder(made.revision), cache.record(made.revision)
    files = {file.path: file_hash(folder / file.path) for file in wanted}
    if before is not None:
        kept = {path: known for path, known in before.files.items() if (folder / path).is_file()}
        made = replace(made, usual=made.usual or before.usual)
        files = kept | files
    _write(folder / RECORD, replace(made, files=files).text())


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    aside.write_text(text, "utf-8")
    aside.replace(file)
