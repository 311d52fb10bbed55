"""Cost of the chat proxy over its model service: first token, whole answer, memory over many streams.

    python -m benchmarks.proxy [--requests 512] [--streams 10000] [--documents 2000]
        [--workers 1] [--clients 1 8 64]

The model service is scripted: it reads a request, waits, and sends its tokens at a fixed pace, in a process of its own.
The same clients ask it directly and through `parquetry serve`, in turns of a few seconds; all share the machine's
cores. Each question is drawn anew, so that no search is answered from the cache.

All answers take the same time, so clients that begin together would ask together for ever. They begin at random moments
within the time of one answer; "at once" is the other case, in which all of them ask within the same millisecond.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.conditions import conditions, wait_until_idle, write_result

CLIENTS = (1, 8, 64)
ROUNDS = 4
"""turns of each case: directly, relayed, with retrieval, and again"""
FIRST_SECONDS, TOKEN_SECONDS, TOKENS = 0.1, 0.01, 30
"""pace of the scripted model: its first token, each further one, and their number"""
PACKAGES = ("parquetry", "aiohttp", "fastapi", "starlette", "uvicorn", "duckdb")
_URL = re.compile(r"http://([\w.]+):(\d+)")
WITHOUT = {"rag_top_k": 0, "rag_enable_tools": False}
"""fields of a request that is only relayed"""
ANSWER_SECONDS = FIRST_SECONDS + TOKENS * TOKEN_SECONDS


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

    def __init__(self, folder: Path, model_port: int, workers: int) -> None:
        command = [sys.executable, "-m", "parquetry.serving.cli.main", "serve", "--port", "0", "--read-only"]
        self._process = subprocess.Popen(
            [*command, "--upstream", f"http://127.0.0.1:{model_port}/v1", "--workers", str(workers)],
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


class Words:
    """Words of the corpus, and questions of them; no question is asked twice."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self.rng = random.Random(17)

    def question(self) -> str:
        return "Which " + " ".join(self.rng.choices(self._words, k=5)) + "?"


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


async def load(
    port: int, words: Words, clients: int, requests: int, *, at_once: bool = True, **fields: Any
) -> list[tuple[float, float]]:
    """Send chats from some clients at a time; return seconds to the first token and to the end of each answer.

    Args:
        port: of the service.
        words: makes the questions.
        clients: number of chats in work at a time.
        requests: number of chats.
        at_once: all clients begin in the same moment, else at random moments within the time of an answer.
        fields: fields of the requests.
    """
    left = requests
    times: list[tuple[float, float]] = []

    async def client() -> None:
        nonlocal left
        connection = ChatClient(port)
        if not at_once:
            await asyncio.sleep(words.rng.uniform(0, ANSWER_SECONDS))
        while left > 0:
            left -= 1
            body = {"model": "m", "messages": [{"role": "user", "content": words.question()}], **fields}
            times.append(await connection.chat(body))

    await asyncio.gather(*(client() for _ in range(clients)))
    return times


def told(times: list[tuple[float, float]], processor_seconds: float) -> dict[str, Any]:
    """Return the figures of one case, in milliseconds."""
    first, whole = (sorted(1000 * each[side] for each in times) for side in (0, 1))
    return {
        "requests": len(times),
        "first_token_p50_ms": round(statistics.median(first), 2),
        "first_token_p95_ms": round(first[int(0.95 * len(first))], 2),
        "whole_p50_ms": round(statistics.median(whole), 2),
        "whole_p95_ms": round(whole[int(0.95 * len(whole))], 2),
        "processor_ms_per_request": round(1000 * processor_seconds / len(times), 2),
        "raw_first_ms": [round(each, 1) for each in first],
        "raw_whole_ms": [round(each, 1) for each in whole],
    }


def compared(model_port: int, proxy: Proxy, words: Words, requests: int, clients: int, **how: Any) -> dict[str, Any]:
    """Measure directly, relayed only, and with retrieval, in turns."""
    cases: dict[str, tuple[int, dict[str, Any]]] = {
        "direct": (model_port, {}),
        "relayed": (proxy.port, WITHOUT),
        "with retrieval": (proxy.port, {}),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    seconds = dict.fromkeys(cases, 0.0)
    for _ in range(ROUNDS):
        for name, (port, fields) in cases.items():
            before = proxy.seconds()
            times[name] += asyncio.run(load(port, words, clients, requests // ROUNDS, **how, **fields))
            seconds[name] += proxy.seconds() - before
    found = {name: told(times[name], seconds[name]) for name in cases}
    for name in ("relayed", "with retrieval"):
        for side in ("first_token_p50_ms", "whole_p50_ms"):
            found[name][f"over_{side}"] = round(found[name][side] - found["direct"][side], 2)
    return found


def all_compared(model_port: int, proxy: Proxy, words: Words, requests: int, numbers: Sequence[int]) -> dict[str, Any]:
    """Measure all numbers of clients, streamed or not, spread over time or at once."""
    found: dict[str, Any] = {}
    for clients in numbers:
        for at_once in (False, True) if clients > 1 else (False,):
            for stream in (False, True):
                number = requests if clients > 8 else max(32, requests // 4 if clients > 1 else requests // 8)
                kind = f"{clients} clients{' at once' if at_once else ''}, {'streamed' if stream else 'whole'}"
                found[kind] = compared(model_port, proxy, words, number, clients, at_once=at_once, stream=stream)
                shown = ("over_first_token_p50_ms", "over_whole_p50_ms", "processor_ms_per_request")
                cases = {name: [found[kind][name][side] for side in shown] for name in ("relayed", "with retrieval")}
                print(kind, cases, flush=True)
    return found


def memory(proxy: Proxy, words: Words, streams: int) -> dict[str, Any]:
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
    parser.add_argument("--requests", type=int, default=512)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--clients", type=int, nargs="+", default=CLIENTS)
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
        words = Words(prepared(folder, given.documents))
        port = int(model.stdout.readline()) if model.stdout else 0
        proxy = Proxy(folder, port, given.workers)
        try:
            asyncio.run(load(proxy.port, words, 8, 200, stream=True, model="fast"))
            idle = wait_until_idle(given.max_load)
            result = {
                "conditions": conditions(PACKAGES),
                "load_at_start": os.getloadavg()[0],
                "idle_before": idle,
                "documents": given.documents,
                "workers": given.workers,
                "pace": {"first_seconds": FIRST_SECONDS, "token_seconds": TOKEN_SECONDS, "tokens": TOKENS},
                "times": all_compared(port, proxy, words, given.requests, given.clients),
                "load_at_end": os.getloadavg()[0],
                "memory": memory(proxy, words, given.streams),
            }
        finally:
            proxy.stop()
            model.terminate()
            model.wait(30)
    print(write_result("proxy" if given.workers == 1 else f"proxy-{given.workers}-workers", result))


if __name__ == "__main__":
    main()
