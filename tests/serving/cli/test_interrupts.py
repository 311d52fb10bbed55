"""Ctrl-C and SIGTERM while a service or native code hangs: the command ends, with nothing published."""

import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler

import psutil
import pytest

from tests.documentation import ROOT
from tests.servers.loopback import LoopbackServer, Quiet
from tests.serving.program import command

pytestmark = pytest.mark.slow

BOUND = 60
"""seconds for a start or an end on a busy machine"""
PATIENT = "import parquetry.net.client as client; client._SILENCE_SECONDS = 6000; main()"
"""The client itself would wait longer than that."""
SITEMAP = "<urlset><url><loc>{}/page</loc><lastmod>2031-01-31</lastmod></url></urlset>"
PLACES = {
    "fetching": ["/sitemap.xml"],
    "listing": ["/urls.txt"],
    "listing-one-of-two": ["/urls.txt", "/other.txt"],
}
"""hanging stage -> addresses of the sources"""


NEXT = "import sys; from parquetry.process_folder import process_folder; process_folder(sys.argv[1])"


class Observer:
    """A site that lists a page and never answers requests for it."""

    def __init__(self):
        self.asked, self.over = threading.Event(), threading.Event()
        site = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path == "/page":
                    site.asked.set()
                    site.over.wait()
                    return
                said = {
                    "/sitemap.xml": SITEMAP.format(site.url),
                    "/urls.txt": f"{site.url}/page\n",
                    "/other.txt": "#\n",
                }
                content = said.get(self.path, "").encode()
                self.send_response(200 if content else 404)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self._server = LoopbackServer(Handler)
        self.url = self._server.url

    def __enter__(self):
        self._server.__enter__()
        return self

    def __exit__(self, *error):
        self.over.set()
        self._server.__exit__(*error)


@pytest.mark.parametrize("addresses", PLACES.values(), ids=PLACES)
def test_interrupt_does_not_wait_for_a_service_that_does_not_answer(tmp_path, addresses):
    with Observer() as site:
        tables = "".join(
            f'[[source]]\nname = "site{number}"\nuri = "{site.url}{address}"\n'
            f'options = {{ allow = ["127.0.0.1"], timeout_seconds = 6000, requests_per_second = 1000 }}\n'
            for number, address in enumerate(addresses)
        )
        (tmp_path / "parquetry.toml").write_text(f'[corpus]\nroot = "corpus"\n{tables}')
        program = [part.replace("main()", PATIENT) for part in command("refresh", "--direct")]
        with subprocess.Popen(program, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            try:
                assert site.asked.wait(BOUND)
                run.send_signal(signal.SIGINT)
                printed, told = run.communicate(timeout=BOUND)
            finally:
                run.kill()
        assert (run.returncode, printed, told) == (130, "", "parquetry: interrupted; nothing was published\n")
        assert not (tmp_path / "corpus").exists()


IN_STATEMENT = """
import os, signal, threading, time
def interrupt():
    main_thread = threading.main_thread().ident
    def is_running(frame):
        return frame is not None and (frame.f_code.co_name == "_interruptible" or is_running(frame.f_back))
    while not is_running(sys._current_frames()[main_thread]):
        time.sleep(0.01)
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
main()
"""
"""Ctrl-C during a statement."""


@pytest.mark.parametrize("options", [[], ["--read-only"], ["--user", "ada"]], ids=" ".join)
def test_interrupt_ends_a_statement_in_one_line(refreshed, options):
    endless = "SELECT count(*) FROM range(1000000000) AS a, range(1000000000) AS b WHERE a.range + b.range = -1"
    arguments = command("sql", "--corpus", refreshed / "corpus", *options, endless)
    program = [part.replace("; main()", IN_STATEMENT) for part in arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=BOUND)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "parquetry: interrupted; nothing was published\n"


def _extracting(run):
    """Return the extraction processes, once they are ready, and the process that they are forked from."""
    started = time.monotonic()
    while time.monotonic() < started + BOUND:
        servers = [each for each in psutil.Process(run.pid).children() if "forkserver" in "".join(each.cmdline())]
        workers = [worker for server in servers for worker in server.children()]
        if workers and all(worker.num_threads() > 1 for worker in workers):
            return servers, workers
        time.sleep(0.05)
    raise TimeoutError("no extraction process was started")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_processes_that_hang_over_a_document_end_with_the_run(tmp_path, temporary, number):
    """A stopped process behaves like one in endless native code: it does nothing."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for page in range(500):
        (folder / f"{page}.md").write_text(f"# {page}\n\n" + "The oak is dried in a kiln. " * 200)
    settings = '[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n[[source]]\nname = "docs"\nuri = "docs"\n'
    (tmp_path / "parquetry.toml").write_text(settings)
    with subprocess.Popen(command("refresh", "--direct"), cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        try:
            servers, workers = _extracting(run)
            for worker in workers:
                worker.suspend()
            run.send_signal(number)
            assert run.wait(BOUND) == (130 if number == signal.SIGINT else -signal.SIGTERM)
            assert psutil.wait_procs([*servers, *workers], BOUND)[1] == []
        finally:
            run.kill()
    assert list((tmp_path / "corpus" / "documents").glob("*.parquet")) == []
    # What a process leaves that was ended at once, the next one removes.
    assert len(list(temporary.iterdir())) == (0 if number == signal.SIGINT else 1)
    subprocess.run([sys.executable, "-c", NEXT, str(temporary)], cwd=ROOT, check=True)
    assert list(temporary.iterdir()) == []
