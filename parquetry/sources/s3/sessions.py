"""Sessions of botocore and aiobotocore, which the clients of S3 are made from."""

from __future__ import annotations

from functools import cache
from typing import Any

from parquetry.sources.s3.answers import time_of


def adapt(session: Any) -> None:
    """Have the clients of a session, which has none yet, parse times with `time_of` and share what describes S3.

    Each session reads the descriptions of services for itself otherwise: 12 MB of memory for a second client.
    """
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=time_of)
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))


@cache
def _loader(data_path: str | None) -> Any:
    from botocore.loaders import create_loader

    return create_loader(data_path)
