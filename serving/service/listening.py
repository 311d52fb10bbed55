"""The socket that a service listens on."""

from __future__ import annotations

import base64
import errno
import os
import socket
import time
from contextlib import suppress
from typing import Any

from parquetry.errors import SettingsError

BACKLOG = 2048
"""connections that wait to be accepted"""
_FREE_SECONDS = 1.0
"""seconds for the processes of a service that was killed to let go of its port"""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; connections wait until a process accepts them.

    Args:
        host: address or name of this machine.
        port: 0 for a free one.

    Raises:
        SettingsError: the port is in use, or the address is none of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise SettingsError(f"{host} is no address of this machine: {error.strerror or error}") from error
    deadline = time.monotonic() + _FREE_SECONDS
    while True:
        listener = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":
                # Elsewhere it would let two programs have the port.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            if error.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            raise SettingsError(_refusal(host, port, error)) from error
        return listener


def url_of(listener: socket.socket, host: str) -> str:
    """Return the URL under which a socket is reached."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def handed_over(listener: socket.socket, pid: int) -> dict[str, Any]:
    """Return how a child process finds the socket: it inherits the descriptor, or on Windows a copy."""
    with suppress(AttributeError):
        return {"share": base64.b64encode(listener.share(pid)).decode()}  # type: ignore[attr-defined,unused-ignore]
    return {"descriptor": listener.fileno()}


def _refusal(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{host}:{port} is in use; stop the program that listens there, or give another --port (0: a free one)"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"this user may not listen on {host}:{port}; give a --port from 1024 on"
    return f"{host}:{port} cannot be listened on: {error.strerror}"
