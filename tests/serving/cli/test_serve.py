"""`parquetry serve`: the whole product in one command, started, stopped and killed."""

import os
import re
import signal
import socket
import stat
import subprocess
import threading
import time
from contextlib import ExitStack, suppress

import httpx
import psutil
import pytest

from parquetry.serving.access.tokens import TokenStore
from parquetry.serving.service.listening import listen
from tests.serving.program import command, start

PATIENCE = 240
"""maximum seconds for any step on a busy machine"""
SETTINGS = "[extraction]\nworkers = 1\n"


class Serving:
    """The running command, and the lines that it prints."""

    def __init__(self, folder, *arguments, port=0):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        self.process = subprocess.Popen(
            command("serve", *arguments, "--port", port),
            cwd=folder,
            env={**environment, "HOME": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self.until(lambda: next(iter(re.findall(r"http://\S+:\d+", "\n".join(self.lines))), None))

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def until(self, found):
        deadline = time.monotonic() + PATIENCE
        while not (result := found()):
            assert self.process.poll() is None, self.lines
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.05)
        return result

    def ask(self, query):
        """Return the names of the documents that a search finds; None while there is nothing to ask."""
        reply = httpx.get(f"{self.url}/api/knowledge/search", params={"q": query, "threshold": 0}, timeout=PATIENCE)
        if reply.status_code == 503:
            return None
        assert reply.status_code == 200, reply.text
        return [each["text"] for each in reply.json()["results"]]

    def until_found(self, words):
        return self.until(lambda: any(words in text for text in self.ask(words) or ()))

    def post(self, name, text):
        body = {"content": text, "filename": name, "contentType": "text/markdown"}
        return httpx.post(f"{self.url}/api/knowledge/documents", json=body, timeout=PATIENCE)

    def children(self, module):
        """Return the processes that run a module."""
        found = psutil.Process(self.process.pid).children()
        return [each for each in found if module in each.cmdline()]

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.end()

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self.process.stdout.close()
        return code


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "oak.txt").write_text("Oak is a hard wood.")
    (tmp_path / "parquetry.toml").write_text(SETTINGS)
    return tmp_path


@pytest.fixture
def serve(folder):
    running = []

    def started(*arguments, **options):
        running.append(Serving(folder, *arguments, **options))
        return running[-1]

    yield started
    for each in running:
        if each.process.poll() is None:
            each.kill()


@pytest.mark.slow
def test_folder_is_indexed_watched_and_served_from_nothing(folder, serve):
    service = serve("docs")
    service.until_found("hard wood")
    assert f"Watching {folder / 'docs'} (file://{folder / 'docs'})." in service.lines
    assert any(re.fullmatch(r"\d\d:\d\d:\d\d 1 added in [\d.]+ s, version \d+", line) for line in service.lines)

    (folder / "docs" / "ash.txt").write_text("Ash is a light wood.")
    service.until_found("light wood")
    (folder / "docs" / "ash.txt").write_text("Ash is a springy timber, which changed.")
    service.until_found("springy timber")
    (folder / "docs" / "ash.txt").unlink()
    service.until(lambda: not any("springy" in text for text in service.ask("springy timber")))

    assert service.post("elm.md", "Elm is a rare wood.").status_code in (200, 201)
    assert any("Elm" in text for text in service.ask("rare wood")), "done means searchable"
    assert stat.S_IMODE((folder / "corpus" / "service").stat().st_mode) == 0o700
    assert service.stop() == 0
    assert service.lines[-1] == "Stopped."

    service = serve("docs")
    assert any("Elm" in text for text in service.ask("rare wood"))
    assert any("Oak" in text for text in service.ask("hard wood"))
    assert service.stop(signal.SIGINT) == 0


@pytest.mark.slow
def test_process_that_is_killed_is_started_again(serve):
    service = serve("docs", "--workers", "2")
    service.until_found("hard wood")
    for number, victim in enumerate(("jobs.process", "service.answering"), start=1):
        service.children(f"parquetry.serving.{victim}")[0].kill()
        told = re.compile(r".*SIGKILL.*it is started again|.*it is started again.*SIGKILL")
        service.until(lambda told=told, number=number: sum(map(bool, map(told.match, service.lines))) == number)
        name = f"elm{number}"
        assert service.post(f"{name}.md", f"The {name} is a rare wood.").status_code in (200, 201)
        assert any(name in text for text in service.ask("rare wood"))
        service.until(lambda: len(service.children("parquetry.serving.service.answering")) == 2)
    assert service.stop() == 0


@pytest.mark.slow
def test_service_that_is_killed_leaves_its_port_and_jobs_to_the_next(folder, serve, temporary):
    first = serve("docs")
    first.until_found("hard wood")
    port = int(first.url.rpartition(":")[2])
    orphans = psutil.Process(first.process.pid).children()
    reply = httpx.post(
        f"{first.url}/api/knowledge/documents",
        json={"content": "Elm is a rare wood.", "filename": "elm.md", "contentType": "text/markdown"},
        headers={"Prefer": "respond-async"},
        timeout=PATIENCE,
    )
    assert reply.status_code == 202
    first.process.kill()
    psutil.wait_procs(orphans, PATIENCE)
    first.end()
    left = set(temporary.iterdir())
    assert left
    second = serve("docs", port=port)
    second.until_found("rare wood")
    assert not left & set(temporary.iterdir())
    assert second.stop() == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_write_that_is_waited_for_is_done_before_the_service_stops(serve):
    service = serve("docs")
    service.until_found("hard wood")
    replies = []
    thread = threading.Thread(target=lambda: replies.append(service.post("elm.md", "Elm is a rare wood.")))
    thread.start()
    time.sleep(0.5)  # until the service has it, on a busy machine, too
    assert service.stop() == 0
    thread.join()
    assert [reply.status_code for reply in replies] in ([200], [201])


def _half_sent(service, path, field):
    """Send the head of an upload and half of its body; return the connection."""
    part = f'--edge\r\nContent-Disposition: form-data; name="{field}"; filename="half.md"\r\n\r\n'.encode()
    body = part + b"Half of it. " * 500_000
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=edge\r\n"
        f"Content-Length: {2 * len(body)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2])), timeout=PATIENCE)
    # All of it is taken up: what the buffers of the system hold is far less.
    connection.sendall(head.encode() + body)
    return connection


def _kept(folder):
    """Return the files of uploads and of `/v1/files`, complete or not."""
    found = (file for place in ("uploads", "service/files") for file in (folder / "corpus" / place).rglob("*"))
    return [file for file in found if file.is_file()]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_half_sent_uploads_are_nowhere_after_the_service_ends(folder, serve, how):
    service = serve("docs")
    service.until_found("hard wood")
    before = _kept(folder)
    with ExitStack() as opened:
        paths = ("/api/knowledge/documents", "/v1/files")
        connections = [opened.enter_context(_half_sent(service, path, "file")) for path in paths]
        children = psutil.Process(service.process.pid).children()
        assert service.stop(how) == (0 if how is signal.SIGTERM else -how)
        psutil.wait_procs(children, PATIENCE)
        for connection in connections:
            answer = b""
            with suppress(ConnectionResetError):
                answer = connection.recv(65_536)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 503 "), answer
    assert not any("Traceback" in line for line in service.lines), service.lines
    assert _kept(folder) == before
    again = serve("docs")
    again.until_found("hard wood")
    assert httpx.get(f"{again.url}/v1/files").json()["data"] == []
    assert again.post("half.md", "All of it is here.").status_code in (200, 201)
    assert any("All of it" in text for text in again.ask("all of it"))
    assert not any("Half of it" in text for text in again.ask("half of it"))
    assert again.stop() == 0


@pytest.mark.slow
def test_read_only_service_has_no_process_for_jobs(serve):
    service = serve("docs")
    service.until_found("hard wood")
    assert service.stop() == 0
    service = serve("--read-only")
    assert any("Oak" in text for text in service.ask("hard wood"))
    assert not service.children("parquetry.serving.jobs.process")
    assert service.post("elm.md", "Elm is a rare wood.").status_code in (403, 405)
    assert service.stop() == 0


@pytest.mark.slow
def test_address_for_other_machines_needs_a_token(folder, serve):
    refused = start("serve", "--host", "0.0.0.0", "--port", "0", cwd=folder)
    assert refused.returncode == 2
    assert "parquetry token create" in refused.stderr
    assert refused.stderr.count("\n") == 1
    with TokenStore(folder / "corpus" / "service") as tokens:
        tokens.create(name="desk", rights=["search"])
    service = serve("--host", "0.0.0.0")
    url = service.url.replace("0.0.0.0", "127.0.0.1")
    assert httpx.get(f"{url}/api/knowledge/stats").status_code == 401
    assert service.stop() == 0


def test_port_in_use_is_one_clear_line(folder):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused = start("serve", "--port", str(port), cwd=folder)
    assert refused.returncode == 2
    assert refused.stderr == (
        f"parquetry: 127.0.0.1:{port} is in use; stop the program that listens there, or give another --port (0: a "
        "free one)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "nowhere is neither a folder or file nor the name of a source"),
        (["docs", "--read-only"], "--read-only serves the corpus as it is"),
        (["--host", "nowhere.invalid"], "nowhere.invalid"),
        (["--workers", "0"], "greater than or equal to 1"),
        (["--config", "no.toml"], "no.toml"),
    ],
)
def test_wrong_use_is_told_before_anything_starts(desk, arguments, told):
    found = desk("serve", "--port", "0", *arguments)
    assert found.code == 2
    assert told in found.complaint


def test_free_port_is_taken_for_zero():
    listener = listen("127.0.0.1", 0)
    assert listener.getsockname()[1] > 0
    listener.close()


def test_address_of_the_next_version_is_listened_on():
    try:
        listener = listen("::1", 0)
    except Exception as error:  # noqa: BLE001
        pytest.skip(f"no IPv6 here: {error}")
    assert listener.family == socket.AF_INET6
    listener.close()
