"""No embedder test uses the developer's own accounts; a hub on loopback has one tiny model."""

from __future__ import annotations

from pathlib import Path

import pytest

from parquetry.settings.hub import HubSettings
from tests.embed.hub_models import DESCRIBED, MODEL
from tests.embed.tiny_onnx import build_folder
from tests.servers.hub_server import HubServer, Repository


@pytest.fixture(autouse=True)
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", *hub):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Return a folder with a model in the usual place of the hub."""
    return build_folder(tmp_path / "model", place="onnx/model.onnx", files=DESCRIBED)


@pytest.fixture
def model(folder: str) -> Repository:
    repository = Repository()
    repository.publish(folder)
    return repository


@pytest.fixture
def hub(model: Repository):
    with HubServer({MODEL: model}) as server:
        yield server


@pytest.fixture
def settings(hub: HubServer, tmp_path: Path) -> HubSettings:
    return HubSettings(url=hub.url, cache=str(tmp_path / "cache"), timeout_seconds=5)
