"""Descriptions of AWS's services, which botocore and aiobotocore read from files: once for all sessions of a process.

Each session reads them for itself otherwise: 12 MB of memory and a tenth of a second for a second client of S3.
"""

from __future__ import annotations

from functools import cache
from typing import Any


def share_descriptions(session: Any) -> None:
    """Have a session of botocore or aiobotocore that has no client yet use the descriptions that others have read."""
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))


@cache
def _loader(data_path: str | None) -> Any:
    from botocore.loaders import create_loader

    return create_loader(data_path)
