"""Descriptions of images by a language model, several at a time, beside the extraction."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from parquetry.llm.client import Answer, LanguageModel
from parquetry.llm.spending import Ledger
from parquetry.settings.llm import LlmSettings

AT_A_TIME = 4
"""requests in flight: a model takes seconds for each, and services limit the rate"""


class Describer:
    """Asks the configured model what images show.

    Args:
        settings: of the model.
        ledger: of the run.

    Raises:
        SettingsError: no model is configured, there is no key for it, or there is a budget and no price.
    """

    def __init__(self, settings: LlmSettings, ledger: Ledger) -> None:
        self._model = LanguageModel(settings, "describe", ledger)
        self._threads = ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="describe")

    def start(self, content: bytes, media_type: str) -> Future[Answer]:
        """Ask for one image; the future raises what `LanguageModel.describe_image` raises."""
        return self._threads.submit(self._model.describe_image, content, media_type)

    def close(self) -> None:
        """Give up what has not been asked yet."""
        self._threads.shutdown(wait=False, cancel_futures=True)
