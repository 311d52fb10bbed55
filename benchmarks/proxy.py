"""Cost of the chat proxy over its model service: first token, whole answer, memory over many streams.

    python -m benchmarks.proxy [--requests 256] [--streams 10000] [--documents 2000]

The model service is scripted: it reads a request, waits, and sends its tokens at a fixed pace, in a process of its own.
The same clients ask it directly and through `parquetry serve`; all share the machine's cores. Each question is drawn
anew, so that no search is answered from the cache.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.conditions import conditions, wait_until_idle, write_result

CLIENTS = (1, 8, 64)
FIRST_SECONDS, TOKEN_SECONDS, TOKENS = 0.1, 0.01, 30
"""pace of the scripted model: its first token, each further one, and their number"""
PACKAGES = ("parquetry", "aiohttp", "fastapi", "starlette", "uvicorn", "duckdb")
_URL = re.compile(r"http://([\w.]+):(\d+)")
WITHOUT = {"rag_top_k": 0, "rag_enable_tools": False}
"""fields of a request that is only relayed"""


# --- the scripted model service, in a process of its own


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    value = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    event = b"data: " + json.dumps(value).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(event), event)


_TOKEN, _END = _chunk({"content": " token"}), _chunk({}, "stop") + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_MESSAGE = {"role": "assistant", "content": " token" * TOKENS}
_WHOLE = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": _MESSAGE, "finish_reason": "stop"}],
    }
).encode()


async def _serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = re.search(rb"content-length: (\d+)", head)
            body = json.loads(await reader.readexactly(int(length[1]) if length else 0))
            # A model without a pace answers at once, with few tokens.
            fast = body["model"] == "fast"
            if not body.get("stream"):
                await asyncio.sleep(0 if fast else FIRST_SECONDS + TOKENS * TOKEN_SECONDS)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                    % (len(_WHOLE), _WHOLE)
                )
                continue
            if fast:
                writer.write(_HEAD + _TOKEN * 8 + _END)
                continue
            await asyncio.sleep(FIRST_SECONDS)
            writer.write(_HEAD)
            for _ in range(TOKENS):
                writer.write(_TOKEN)
                await asyncio.sleep(TOKEN_SECONDS)
            writer.write(_END)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _model_service() -> None:
    server = await asyncio.start_server(_serve_one, "127.0.0.1", 0, limit=1 << 22)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


# --- the proxy


class Proxy:
    """A running `parquetry serve`."""

    def __init__(self, folder: Path, model_port: int) -> None:
        command = [sys.executable, "-m", "parquetry.serving.cli.main", "serve", "--port", "0", "--read-only"]
        self._process = subprocess.Popen(
            [*command, "--upstream", f"http://127.0.0.1:{model_port}/v1"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self.port = self._port()
        threading.Thread(target=lambda: self.lines.extend(self._process.stdout or ()), daemon=True).start()

    def _port(self) -> int:
        for line in self._process.stdout or ():
            self.lines.append(line)
            if found := _URL.search(line):
                return int(found[2])
        raise SystemExit("the service did not start:\n" + "".join(self.lines))

    def memory_mb(self) -> float:
        """Resident memory of the processes that answer, in MB."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        return round(sum(each.memory_info().rss for each in children) / 1e6, 1)

    def seconds(self) -> float:
        """Processor time of the processes that answer."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        return sum(sum(each.cpu_times()[:2]) for each in children)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)


# --- the clients


class ChatClient:
    """One connection, kept alive."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def chat(self, body: dict[str, Any]) -> tuple[float, float]:
        """Return seconds to the first token and to the end of an answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 22)
        reader, writer = self._streams
        content = json.dumps(body).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
        started = time.perf_counter()
        writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + content)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not answer.startswith(b"http/1.1 200"):
            raise SystemExit(answer.decode("latin-1") + (await reader.read(2000)).decode("utf-8", "replace"))
        if length := re.search(rb"content-length: (\d+)", answer):
            await reader.readexactly(int(length[1]))
            taken = time.perf_counter() - started
            return taken, taken
        first = None
        while size := int(await reader.readline(), 16):
            block = await reader.readexactly(size + 2)
            if first is None and b"token" in block:
                first = time.perf_counter() - started
            if b'"error"' in block:
                raise SystemExit(block.decode("utf-8", "replace"))
        await reader.readline()
        return first or 0.0, time.perf_counter() - started


async def load(port: int, words: list[str], clients: int, requests: int, **fields: Any) -> dict[str, Any]:
    """Send chats from some clients at a time; return their times."""
    rng, left = random.Random(clients), requests
    times: list[tuple[float, float]] = []

    async def client() -> None:
        nonlocal left
        connection = ChatClient(port)
        while left > 0:
            left -= 1
            question = "Which " + " ".join(rng.choices(words, k=5)) + "?"
            body = {"model": "m", "messages": [{"role": "user", "content": question}], **fields}
            times.append(await connection.chat(body))

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    seconds = time.perf_counter() - started
    first, whole = (sorted(each[side] for each in times) for side in (0, 1))
    return {
        "requests": len(times),
        "requests_per_second": round(len(times) / seconds, 1),
        "first_token_p50_ms": round(1000 * statistics.median(first), 2),
        "first_token_p95_ms": round(1000 * first[int(0.95 * len(first))], 2),
        "whole_p50_ms": round(1000 * statistics.median(whole), 2),
        "whole_p95_ms": round(1000 * whole[int(0.95 * len(whole))], 2),
        "raw_first_ms": [round(1000 * each, 1) for each in first],
        "raw_whole_ms": [round(1000 * each, 1) for each in whole],
    }


def compared(model_port: int, proxy: Proxy, words: list[str], requests: int) -> dict[str, Any]:
    """Measure directly, relayed only, and with retrieval; streamed or not."""
    found: dict[str, Any] = {}
    for clients in CLIENTS:
        for stream in (False, True):
            number = max(32, requests if clients > 1 else requests // 8)
            cases = {
                "direct": asyncio.run(load(model_port, words, clients, number, stream=stream)),
                "relayed": asyncio.run(load(proxy.port, words, clients, number, stream=stream, **WITHOUT)),
                "with retrieval": asyncio.run(load(proxy.port, words, clients, number, stream=stream)),
            }
            for name in ("relayed", "with retrieval"):
                for side in ("first_token_p50_ms", "whole_p50_ms"):
                    cases[name][f"over_{side}"] = round(cases[name][side] - cases["direct"][side], 2)
            kind = f"{clients} clients, {'streamed' if stream else 'whole'}"
            found[kind] = cases
            over = {name: cases[name]["over_first_token_p50_ms"] for name in ("relayed", "with retrieval")}
            print(kind, {name: (over[name], cases[name]["over_whole_p50_ms"]) for name in over}, flush=True)
    return found


def memory(proxy: Proxy, words: list[str], streams: int) -> dict[str, Any]:
    """Measure memory while many streamed answers are relayed, with retrieval."""
    found, seconds = [], proxy.seconds()
    for done in range(0, streams, streams // 10):
        asyncio.run(load(proxy.port, words, 16, streams // 10, stream=True, model="fast"))
        found.append({"streams": done + streams // 10, "memory_mb": proxy.memory_mb()})
        print(found[-1], flush=True)
    return {"by_streams": found, "processor_ms_per_stream": round(1000 * (proxy.seconds() - seconds) / streams, 2)}


def prepared(folder: Path, documents: int) -> list[str]:
    """Write and index a corpus of random sentences; return its words."""
    rng = random.Random(7)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(4, 9))) for _ in range(3000)]
    (folder / "docs").mkdir()
    for number in range(documents):
        text = ". ".join(" ".join(rng.choices(words, k=12)) for _ in range(12))
        (folder / "docs" / f"{number}.md").write_text(f"# {rng.choice(words)}\n\n{text}.\n")
    command = [sys.executable, "-m", "parquetry.serving.cli.main", "refresh", "docs", "--direct"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--max-load", type=float)
    parser.add_argument("--serve-model", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve_model:
        asyncio.run(_model_service())
        return
    model = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.proxy", "--serve-model"], stdout=subprocess.PIPE, text=True
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        words = prepared(folder, given.documents)
        port = int(model.stdout.readline()) if model.stdout else 0
        proxy = Proxy(folder, port)
        try:
            asyncio.run(load(proxy.port, words, 8, 200, stream=True, model="fast"))
            idle = wait_until_idle(given.max_load)
            result = {
                "conditions": conditions(PACKAGES),
                "load_at_start": os.getloadavg()[0],
                "idle_before": idle,
                "documents": given.documents,
                "pace": {"first_seconds": FIRST_SECONDS, "token_seconds": TOKEN_SECONDS, "tokens": TOKENS},
                "times": compared(port, proxy, words, given.requests),
                "load_at_end": os.getloadavg()[0],
                "memory": memory(proxy, words, given.streams),
            }
        finally:
            proxy.stop()
            model.terminate()
            model.wait(30)
    print(write_result("proxy", result))


if __name__ == "__main__":
    main()
