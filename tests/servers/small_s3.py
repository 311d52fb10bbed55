"""An object store in memory with as much S3 as a corpus needs, which misbehaves on request.

It checks no signatures. It handles conditional writes as real stores do: it may honour them, ignore them, refuse them,
or check first and write later. It is a separate process, because some calls of delta-rs block all their other threads
while they wait for the answer.
"""

import hashlib
import json
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from email.utils import formatdate
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

_CONTROL = "/-/control"
_CODES = {403: "AccessDenied", 409: "ConditionalRequestConflict", 412: "PreconditionFailed", 501: "NotImplemented"}


class SmallS3:
    """A running store, and its scripted faults.

    Args:
        endpoint: URL of the store.
    """

    def __init__(self, endpoint):
        self.endpoint = endpoint

    def environment(self):
        """Return the environment variables that direct the clients here."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }

    def conditions(self, kind):
        """Set the handling of conditional writes: honoured, ignored, refused or raced."""
        self._tell("behave", kind)

    def fail(self, method, pattern, *, times=1, status=500, landed=False, then_down=False):
        """Answer the next matching requests with an error, after executing them or without.

        With `then_down` every later request fails too.
        """
        self._tell("fail", method, pattern, times, status, landed, then_down)

    def recover(self):
        """Stop all faults."""
        self._tell("recover")

    def reset(self):
        """Delete all objects, requests and faults."""
        self._tell("reset")

    def objects(self):
        """Return /bucket/key of every object -> digest of its content."""
        return self._tell("listed")

    def requests(self):
        """Return [method, path] of every request since the last call."""
        return self._tell("asked")

    def _tell(self, name, *arguments):
        connection = HTTPConnection(urlsplit(self.endpoint).netloc, timeout=30)
        connection.request("POST", _CONTROL, json.dumps([name, *arguments]))
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer


class _State:
    """The content and behaviour of the store."""

    def __init__(self):
        self._lock = Lock()
        self.reset()

    def reset(self):
        self.objects, self._asked, self._faults, self._conditions = {}, [], [], "honoured"

    def behave(self, conditions):
        self._conditions = conditions

    def fail(self, method, pattern, times, status, landed, then_down):
        self._faults.append([method, re.compile(pattern), times, status, landed, then_down])

    def recover(self):
        self._faults.clear()

    def listed(self):
        return {path: hashlib.md5(content).hexdigest() for path, content in self.objects.items()}

    def asked(self):
        asked, self._asked = self._asked, []
        return asked

    def fault(self, method, path):
        with self._lock:
            self._asked.append((method, path))
            for fault in self._faults:
                if fault[2] and fault[0] in (method, "") and fault[1].search(path):
                    fault[2] -= 1
                    if fault[5]:
                        self._faults = [["", re.compile(""), 10_000, 503, False, False]]
                    return fault[3], fault[4]
        return None

    def put(self, path, content, condition):
        """Store an object; return the status of the answer."""
        if condition and self._conditions == "refused":
            return 501
        if condition and self._conditions == "raced":
            there = path in self.objects
            time.sleep(0.05)
            if there:
                return 412
        with self._lock:
            if condition and self._conditions == "honoured" and path in self.objects:
                return 412
            self.objects[path] = content
        return 200


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Send headers and content in one packet.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def handle_expect_100(self):
        expected = super().handle_expect_100()
        self.wfile.flush()
        return expected

    @property
    def store(self):
        return self.server.store

    @property
    def address(self):
        return unquote(urlsplit(self.path).path)

    def handle_one(self, method, work):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.store.fault(method, self.address)
        if fault is None:
            return work(body)
        status, landed = fault
        if landed:
            self.answer = lambda *_, **__: None
            work(body)
            del self.answer
        return self.refuse(status)

    def do_PUT(self):
        def put(body):
            status = self.store.put(self.address, body, self.headers.get("If-None-Match") == "*")
            self.answer(200, headers=_described(body)) if status == 200 else self.refuse(status)

        self.handle_one("PUT", put)

    def do_GET(self):
        def get(_):
            query = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
            if "list-type" in query:
                bucket = "/" + self.address.strip("/") + "/"
                return self.answer(200, _listing(self.store, bucket, query))
            return self.read(with_content=True)

        self.handle_one("GET", get)

    def do_HEAD(self):
        self.handle_one("HEAD", lambda _: self.read(with_content=False))

    def do_DELETE(self):
        def delete(_):
            self.store.objects.pop(self.address, None)
            self.answer(204)

        self.handle_one("DELETE", delete)

    def do_POST(self):
        name, *arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(200, json.dumps(getattr(self.store, name)(*arguments)).encode())

    def read(self, *, with_content):
        content = self.store.objects.get(self.address)
        if content is None:
            return self.refuse(404, "NoSuchKey")
        headers, size = _described(content), len(content)
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if not wanted:
            return self.answer(200, content, headers, with_content=with_content)
        first = int(wanted[1]) if wanted[1] else max(0, size - int(wanted[2]))
        last = min(int(wanted[2]), size - 1) if wanted[1] and wanted[2] else size - 1
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        return self.answer(206, content[first : last + 1], headers, with_content=with_content)

    def refuse(self, status, code=None):
        code = code or _CODES.get(status, "InternalError")
        self.answer(status, f"<Error><Code>{code}</Code><Message>{code} here</Message></Error>".encode())

    def answer(self, status, content=b"", headers=None, *, with_content=True):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if with_content and self.command != "HEAD":
            self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def _described(content):
    return {"ETag": f'"{hashlib.md5(content).hexdigest()}"', "Last-Modified": formatdate(0, usegmt=True)}


def _listing(store, bucket, query):
    prefix, delimiter, after = query.get("prefix", ""), query.get("delimiter", ""), query.get("start-after", "")
    keys = sorted(path.removeprefix(bucket) for path in list(store.objects) if path.startswith(bucket))
    found, folders = [], []
    for key in keys:
        if not key.startswith(prefix) or key <= after:
            continue
        head, mark, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        if not mark:
            found.append(key)
        elif (folder := prefix + head + mark) not in folders:
            folders.append(folder)
    name = quote if query.get("encoding-type") == "url" else escape
    contents = "".join(
        f"<Contents><Key>{name(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        f"<ETag>&quot;e&quot;</ETag><Size>{len(store.objects.get(bucket + key, b''))}</Size></Contents>"
        for key in found
    )
    common = "".join(f"<CommonPrefixes><Prefix>{name(folder)}</Prefix></CommonPrefixes>" for folder in folders)
    return (
        f"<ListBucketResult><Name>{bucket.strip('/')}</Name><IsTruncated>false</IsTruncated>"
        f"<KeyCount>{len(found) + len(folders)}</KeyCount>{contents}{common}</ListBucketResult>"
    ).encode()


@contextmanager
def small_s3():
    """Start a store on a free port of this machine; it ends with the `with` block."""
    process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
    try:
        yield SmallS3(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    with _Server(("127.0.0.1", 0), _Handler) as serving:
        serving.store = _State()
        print(f"http://127.0.0.1:{serving.server_port}", flush=True)
        serving.serve_forever()
