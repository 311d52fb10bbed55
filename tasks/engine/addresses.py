"""The check that something listens at the address of a cluster, before its client tries for a long time."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from parquetry.errors import SettingsError, first_line

_SECONDS = 10
"""seconds for a cluster to answer"""


def check_there(address: str, program: str, port: int | None = None) -> None:
    """Refuse an address at which nothing listens.

    Args:
        address: `host:port`, or a URL with both.
        program: what should listen, for the message.
        port: port of an address without one; None if it has to have one.

    Raises:
        SettingsError: nothing listens there, or it is no address.
    """
    try:
        with socket.create_connection(_place(address, port), _SECONDS):
            pass
    except (OSError, ValueError) as error:
        raise SettingsError(f"run.address {address!r}: no {program} answers there: {first_line(error)}") from error


def _place(address: str, port: int | None) -> tuple[str, int]:
    place = urlsplit(address if "://" in address else f"//{address}")
    number = place.port or port
    if not place.hostname or number is None:
        raise ValueError("it needs a host and a port, as tcp://scheduler:8786")
    return place.hostname, number
