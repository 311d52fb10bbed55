"""The client library of the Hugging Face Hub, held back: what it sends, and how much it reads of an answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from parquetry.errors import MissingExtra, TransientError
from parquetry.settings.hub import HubModel, HubSettings

if TYPE_CHECKING:
    import httpx2

MEBIBYTE = 1024 * 1024
MOST_TRANSFERS = 3
"""times that the bytes of a file may be sent"""
_MOST_LISTED_BYTES = 16 * MEBIBYTE
"""bytes of a list of files, and of an answer that refuses one"""
_MOST_SILENCES = 10
"""longest silences of the settings that such an answer may take as a whole"""
_switched = threading.Lock()
"""held while the library is switched: its switches are those of the process"""


@contextmanager
def held_back(model: HubModel, hub: HubSettings) -> Iterator[Any]:
    """Yield huggingface_hub with its telemetry, its second way of transfer and its output off, and answers limited.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import huggingface_hub
        from huggingface_hub import constants
        from huggingface_hub.utils import _http
        from huggingface_hub.utils import logging as library_logging
    except ImportError as error:
        raise MissingExtra("hub", f"the model onnx:{model}") from error
    wanted = {
        "HF_HUB_DISABLE_TELEMETRY": True,
        # Its transfers go to other hosts than the settings name, and have no limit.
        "HF_HUB_DISABLE_XET": True,
        "HF_HUB_DOWNLOAD_TIMEOUT": hub.timeout_seconds,
        "DOWNLOAD_CHUNK_SIZE": MEBIBYTE,
    }
    with _switched:
        before, verbosity = {name: getattr(constants, name) for name in wanted}, library_logging.get_verbosity()
        # The library tells no other way which clients it makes.
        make_client = _http._GLOBAL_CLIENT_FACTORY
        for name, value in wanted.items():
            setattr(constants, name, value)
        library_logging.set_verbosity(logging.CRITICAL)
        huggingface_hub.set_client_factory(lambda: _limited(make_client(), hub))
        try:
            yield huggingface_hub
        finally:
            huggingface_hub.set_client_factory(make_client)
            library_logging.set_verbosity(verbosity)
            for name, value in before.items():
                setattr(constants, name, value)


def _limited(client: httpx2.Client, hub: HubSettings) -> httpx2.Client:
    """Return a client that takes answers unpacked only, and reads no more of one than it may have."""
    import httpx2

    class Limited(httpx2.SyncByteStream):
        def __init__(self, stream: httpx2.SyncByteStream, what: str, most: int, seconds: float) -> None:
            self._stream, self._what, self._most, self._seconds = stream, what, most, seconds

        def __iter__(self) -> Iterator[bytes]:
            received, end = 0, monotonic() + self._seconds
            for piece in self._stream:
                received += len(piece)
                if received > self._most:
                    raise TransientError("bad-reply", f"{self._what} answers with more than {self._most:,} bytes")
                if monotonic() > end:
                    raise TransientError("timeout", f"{self._what} was not done after {self._seconds:g} s")
                yield piece

        def close(self) -> None:
            self._stream.close()

    def ask_unpacked(request: httpx2.Request) -> None:
        request.headers["Accept-Encoding"] = "identity"

    def limit(response: httpx2.Response) -> None:
        what = str(response.request.url.copy_with(query=None))
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise TransientError("bad-reply", f"{what} answers packed, which nobody asked for")
        if not isinstance(response.stream, httpx2.SyncByteStream):
            raise TypeError("a client for threads has streams for threads")
        is_file = response.is_success and "/api/" not in response.request.url.path
        most = MOST_TRANSFERS * hub.max_bytes if is_file else _MOST_LISTED_BYTES
        seconds = float("inf") if is_file else _MOST_SILENCES * hub.timeout_seconds
        response.stream = Limited(response.stream, what, most, seconds)

    hooks = client.event_hooks
    client.event_hooks = {"request": [*hooks["request"], ask_unpacked], "response": [*hooks["response"], limit]}
    return client
