"""Models of the Hugging Face Hub on this machine: found in the cache, or fetched into it once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from parquetry.embed.onnx_model import file_hash
from parquetry.errors import SettingsError
from parquetry.settings.hub import HubModel, HubSettings, is_commit

RECORD = "parquetry-model.json"
"""file beside the files of a model, written once all of them are there and are those of the hub"""


@dataclass(frozen=True, slots=True)
class ModelPlace:
    """Files of a model on this machine."""

    folder: Path
    file: Path | None = None
    """the `.onnx` file; None for the usual one in the folder"""
    commit: str | None = None
    """revision on the hub; None for a folder of the settings"""


@dataclass(frozen=True, slots=True)
class FetchedFiles:
    """Files of a revision that were fetched and compared with the hub's checksums."""

    model: str
    """`owner/name`"""
    revision: str
    """commit, 40 hex digits"""
    usual: str | None
    """path of the `.onnx` file that is taken if none is named; None if it was not fetched"""
    files: Mapping[str, str]
    """path -> `content_hash`"""

    def text(self) -> str:
        """Return the content of the file."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)


class HubCache:
    """The cached revisions of one model.

    Args:
        model: the model.
        hub: settings with the cache.
    """

    def __init__(self, model: HubModel, hub: HubSettings) -> None:
        self._model = model
        self.root = hub.folder.absolute() / model.repository.replace("/", "--")

    def folder(self, commit: str) -> Path:
        """Return the folder of a revision."""
        return self.root / commit

    @property
    def pin(self) -> Path:
        """The file with the commit that a tag, a branch or no revision means here from its first use on."""
        return self.root / "revisions" / self._model.asked

    def commit(self) -> str | None:
        """Return the commit that the model's revision means here; None before its first use."""
        if is_commit(self._model.asked):
            return self._model.asked
        with suppress(FileNotFoundError, UnicodeDecodeError):
            found = self.pin.read_text("ascii").strip()
            return found if is_commit(found) else None
        return None

    def record(self, commit: str) -> FetchedFiles | None:
        """Return the record of a revision; None if there is none that can be read."""
        with suppress(OSError, ValueError, TypeError, AttributeError):
            record = FetchedFiles(**json.loads((self.folder(commit) / RECORD).read_text("utf-8")))
            if record.revision == commit and all(isinstance(each, str) for each in record.files.values()):
                return record
        return None

    def find(self) -> ModelPlace | None:
        """Return the model if it was fetched.

        Raises:
            SettingsError: a file is not as it was fetched.
        """
        commit = self.commit()
        record = self.record(commit) if commit is not None else None
        if commit is None or record is None:
            return None
        chosen = self._model.file or record.usual
        if chosen is None or chosen not in record.files:
            return None
        folder = self.folder(commit)
        for path, known in record.files.items():
            try:
                same = file_hash(folder / path) == known
            except OSError:
                same = False
            if not same:
                raise SettingsError(
                    f"{folder / path} is not as it was fetched for onnx:{self._model}; delete {folder}, and it is "
                    "fetched again"
                )
        return ModelPlace(folder, folder / chosen, commit)


def located(model: HubModel, hub: HubSettings) -> ModelPlace:
    """Return the files of a model, which are fetched if they are not in the cache.

    Raises:
        MissingExtra: the client of the hub or onnxruntime is not installed.
        SettingsError: the model is not in the cache and the hub may not be asked, or the hub does not give it out.
        TransientError: the hub cannot be reached, or its answer is not what it should be.
    """
    cache = HubCache(model, hub)
    found = cache.find()
    if found is not None:
        return found
    if hub.offline_by is not None:
        raise SettingsError(
            f"the model onnx:{model} is not in {hub.folder}, and the hub is not asked ({hub.offline_by}): run the "
            "command once with the hub, copy the folder from a machine that has it, or name a folder, onnx:./folder"
        )
    from parquetry.embed.hub_client import fetch

    return fetch(model, hub, cache)
