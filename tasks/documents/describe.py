"""Descriptions of images by a language model, several concurrently, in parallel with the extraction."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from parquetry.llm.client import Completion, LanguageModel
from parquetry.llm.spending import Ledger
from parquetry.settings.llm import LlmSettings
from parquetry.telemetry.tracing import carried

AT_A_TIME = 4
"""concurrent requests: a model takes seconds for each, and services limit the rate"""


class Describer:
    """Request descriptions of images from the configured model.

    Args:
        settings: settings of the model.
        ledger: ledger of the run.

    Raises:
        SettingsError: no model is configured, its key is missing, or there is a budget but no price.
    """

    def __init__(self, settings: LlmSettings, ledger: Ledger) -> None:
        self._model = LanguageModel(settings, "describe", ledger)
        self._threads = ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="describe")

    def start(self, content: bytes, media_type: str) -> Future[Completion]:
        """Request the description of one image; the future raises what `LanguageModel.describe_image` raises."""
        return self._threads.submit(carried(self._model.describe_image), content, media_type)

    def close(self) -> None:
        """Cancel requests that have not been sent."""
        self._threads.shutdown(wait=False, cancel_futures=True)
