"""A real HTTP server on loopback with models in the form of the Hugging Face Hub, and a second one for large files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from tests.servers.loopback import LoopbackServer, Quiet


@dataclass
class Repository:
    """A model of the hub."""

    revisions: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """commit -> path -> content"""
    names: dict[str, str] = field(default_factory=dict)
    """branch or tag -> commit"""
    token: str | None = None
    """token that may read it, if it is private"""
    gated: bool = False

    def publish(self, folder: str | Path, branch: str = "main") -> str:
        """Add the files of a folder as the newest revision of a branch; return the commit."""
        root = Path(folder)
        files = {each.relative_to(root).as_posix(): each.read_bytes() for each in root.rglob("*") if each.is_file()}
        digest = hashlib.sha1(b"".join(path.encode() + files[path] for path in sorted(files)))
        self.revisions[digest.hexdigest()] = files
        self.names[branch] = digest.hexdigest()
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Asked:
    """A request received."""

    method: str
    path: str
    token: str | None
    agent: str
    encodings: str
    """forms in which the client takes an answer"""


@dataclass(frozen=True, slots=True)
class Sent:
    """An answer."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Change = Callable[[Asked, Sent], Sent]
"""request and answer -> the answer that a test sends in its place"""


class _Recording(LoopbackServer):
    def __init__(self, answer: Callable[[Asked], Sent]) -> None:
        self.asked: list[Asked] = []
        self.unscripted: list[str] = []
        owner = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                told = self.headers
                token, agent = told.get("Authorization"), told.get("User-Agent", "")
                asked = Asked(self.command, self.path, token, agent, told.get("Accept-Encoding", ""))
                owner.asked.append(asked)
                try:
                    sent = answer(asked)
                except KeyError:
                    owner.unscripted.append(f"{self.command} {self.path}")
                    sent = Sent(500)
                self.send_response(sent.status)
                for name, value in {"Content-Length": str(len(sent.body)), **sent.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(sent.body)
                if int(sent.headers.get("Content-Length", 0)) > len(sent.body):
                    self.close_connection = True

            def do_HEAD(self) -> None:
                self.do_GET()

        super().__init__(Handler)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is None:
            assert self.unscripted == [], "requests that no test expects"


class HubServer(_Recording):
    """Answers what huggingface_hub asks for a model: its files with checksums, and each file.

    Files that end in `.onnx` or have `.onnx_data` in their name are large: the second server, `storage`, has them, and
    they are offered by the own transfer of the hub (Xet), too.
    Any other request fails the test.

    Args:
        models: `owner/name` -> model.
    """

    def __init__(self, models: Mapping[str, Repository] | None = None) -> None:
        self.models = dict(models or {})
        self.change: Change = lambda _, sent: sent
        self.change_stored: Change = lambda _, sent: sent
        super().__init__(lambda asked: self.change(asked, self._answer(asked)))
        self.storage = _Recording(lambda asked: self.change_stored(asked, self._stored(asked)))

    def __enter__(self) -> Self:
        self.storage.__enter__()
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.storage.__exit__(kind, error, trace)
        super().__exit__(kind, error, trace)

    @property
    def fetched(self) -> list[str]:
        """Paths of the files whose content was sent, in order."""
        here = [each for each in self.asked if "/resolve/" in each.path and not _is_large(each.path)]
        found = [each.path for each in (*here, *self.storage.asked) if each.method == "GET"]
        return [unquote(urlsplit(path).path.split("/", 5)[5]) for path in found]

    def _answer(self, asked: Asked) -> Sent:
        parts = unquote(urlsplit(asked.path).path).strip("/").split("/")
        listing = parts[:2] == ["api", "models"]
        owner, name, kind, revision, *rest = parts[2:] if listing else parts
        if kind != ("revision" if listing else "resolve") or (listing and (asked.method != "GET" or rest)):
            raise KeyError(asked.path)
        model = self.models.get(f"{owner}/{name}")
        if asked.token == "Bearer hf_revoked":
            return refused(401, "", "Invalid credentials in Authorization header")
        if model is None or (model.token is not None and asked.token != f"Bearer {model.token}"):
            return refused(404 if asked.token else 401, "RepoNotFound", "Repository not found")
        commit = model.names.get(revision, revision)
        if commit not in model.revisions:
            return refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        files = model.revisions[commit]
        if listing:
            return as_json(
                {"id": f"{owner}/{name}", "sha": commit, "siblings": [_listed(*each) for each in files.items()]}
            )
        if model.gated:
            return refused(403 if asked.token else 401, "GatedRepo", "Access to this model is restricted")
        content = files["/".join(rest)]
        return self._file(f"{owner}/{name}", commit, "/".join(rest), content, asked)

    def _file(self, model: str, commit: str, path: str, content: bytes, asked: Asked) -> Sent:
        headers = {"X-Repo-Commit": commit, "ETag": f'"{_git(content)}"'}
        if not _is_large(path):
            length = {"Content-Length": str(len(content))}
            return Sent(200, headers | length, content if asked.method == "GET" else b"")
        place = f"{self.storage.url}/{model}/stored/{commit}/{path}"
        transfer = {
            "X-Xet-Hash": hashlib.sha256(b"xet" + content).hexdigest(),
            "X-Xet-Refresh-Route": f"{self.url}/api/models/{model}/xet-read-token/{commit}",
        }
        linked = {"X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
        return Sent(302, headers | transfer | linked | {"Location": place})

    def _stored(self, asked: Asked) -> Sent:
        owner, name, _, commit, path = urlsplit(asked.path).path.strip("/").split("/", 4)
        if asked.method != "GET":
            raise KeyError(asked.path)
        return Sent(200, {}, self.models[f"{owner}/{name}"].revisions[commit][path])


def refused(status: int, code: str, message: str) -> Sent:
    """Return an error in the form of the hub."""
    return replace(as_json({"error": message}, status), headers={"X-Error-Code": code, "X-Error-Message": message})


def as_json(value: Any, status: int = 200) -> Sent:
    return Sent(status, {"Content-Type": "application/json"}, json.dumps(value).encode())


def _is_large(path: str) -> bool:
    return path.endswith(".onnx") or ".onnx_data" in path


def _git(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _listed(path: str, content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": _git(content)}
    if _is_large(path):
        found["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return found
