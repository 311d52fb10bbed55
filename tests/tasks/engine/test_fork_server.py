"""The processes that read documents hold no secret of the run, and do not import the program that started them."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import spawn
from pathlib import Path

import pytest

from parquetry.tasks.engine import fork_server
from parquetry.tasks.engine.fork_server import needed

PROGRAM = """
import os, signal, sys
from pathlib import Path
from parquetry.errors import BrokenDocument
from parquetry.settings.sections import ChunkingSettings, ExtractionSettings
from parquetry.tasks.engine.fork_server import start_ahead

if __name__ == "__main__":
    start_ahead(["this"])
    from parquetry.tasks.engine.workers import WorkerPool

    pool = WorkerPool(ExtractionSettings(workers=1), ChunkingSettings(), None)
    ask = lambda function, *arguments: pool.result(pool._schedule(function, *arguments))
    print(ask(os.getenv, "OPENAI_API_KEY"), ask(os.getenv, "DATABASE_URL"), ask(os.getenv, "LANG"))
    for name in ("parquetry.extract.registry", "this", "pydantic"):
        print(ask(eval, f"'{name}' in __import__('sys').modules"), end=" ")
    print()
    for _ in range(2):
        worker, server = ask(os.getpid), ask(os.getppid)
        assert server != os.getpid()
        for process in (worker, server):
            print(Path(f"/proc/{process}/environ").read_bytes())
        # The next process is one of a server that is started again.
        os.kill(server, signal.SIGKILL)
        try:
            ask(os._exit, 1)
        except BrokenDocument:
            pass
    pool.close()
    print(os.environ["OPENAI_API_KEY"])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc")
def test_no_process_that_reads_documents_was_started_with_a_secret(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    planted = {"OPENAI_API_KEY": "sk-planted-1", "DATABASE_URL": "postgres://me:pw-planted@db", "LANG": "C.UTF-8"}
    run = subprocess.run(
        [sys.executable, "-W", "error", str(file)],
        capture_output=True,
        text=True,
        env={**os.environ, **planted, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    told, imported, *environments, own = run.stdout.splitlines()
    assert [len(environments), told, own] == [4, "None None C.UTF-8", "sk-planted-1"]
    assert imported.split() == ["True", "True", "False"]
    assert all("LANG=C.UTF-8" in each and "planted" not in each for each in environments)


DYING = """
import os, signal, threading, time
from parquetry.settings.sections import ChunkingSettings, ExtractionSettings
from parquetry.tasks.engine.workers import WorkerPool

if __name__ == "__main__":
    pool = WorkerPool(ExtractionSettings(workers=2), ChunkingSettings(), None)
    server = pool.result(pool._schedule(os.getppid))
    # It takes the request for the second process, and dies before it answers.
    os.kill(server, signal.SIGSTOP)
    busy = pool._schedule(time.sleep, 3)
    threading.Timer(1, os.kill, (server, signal.SIGKILL)).start()
    print(pool.result(pool._schedule(abs, -3)), pool.result(busy))
    pool.close()
"""


@pytest.mark.skipif(os.name != "posix", reason="no fork server")
def test_server_that_is_killed_while_it_starts_a_process_costs_nothing(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(DYING)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        [sys.executable, "-W", "error", str(file)], capture_output=True, text=True, env=environment, timeout=120
    )
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "3 None\n")


START = """
import multiprocessing, sys
from parquetry.tasks.engine.fork_server import start_fork_server

if __name__ == "__main__":
    start_fork_server()
    process = multiprocessing.get_context("forkserver").Process(target=sys.exit, args=("a traceback",))
    process.start()
    process.join()
    print(process.exitcode)
"""


def test_what_goes_wrong_while_a_process_starts_is_not_written_on_the_terminal(tmp_path):
    """Closing a pool removes the semaphores of a process that is just starting, which prints a traceback."""
    file = tmp_path / "program.py"
    file.write_text(START)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, env=environment, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "1\n", "")


SCRIPT = """
print("started", flush=True)
from parquetry import Corpus
with Corpus("corpus", create=True) as corpus:
    print(corpus.add("The lift is inspected in May.", name="lift.md").chunks)
"""


@pytest.mark.slow
def test_script_is_not_run_again_by_the_processes_that_read(tmp_path):
    """As processes of `multiprocessing` do, which fail or wait for ever where it has no `if __name__ == "__main__"`."""
    (tmp_path / "program.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=120
    )
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "started\n1\n")


def test_program_is_hidden_from_the_processes_of_this_thread_alone(monkeypatch):
    """Those that a program starts itself meanwhile may run its functions."""
    monkeypatch.setattr(spawn, "get_preparation_data", lambda name: {"name": name, "init_main_from_path": "program.py"})
    with fork_server._program_hidden(), ThreadPoolExecutor(1) as other:
        assert spawn.get_preparation_data("here") == {"name": "here"}
        assert "init_main_from_path" in other.submit(spawn.get_preparation_data, "there").result()
    assert "init_main_from_path" in spawn.get_preparation_data("after")


def test_what_is_needed_is_kept_unless_its_name_is_that_of_a_secret():
    told = {"PATH": "/bin", "LC_ALL": "C", "OMP_NUM_THREADS": "2", "PYTHON_KEYRING_PASSWORD": "x", "AWS_PROFILE": "y"}
    assert needed(told) == {"PATH": "/bin", "LC_ALL": "C", "OMP_NUM_THREADS": "2"}


ENDING = """
import os
from parquetry.settings.sections import ChunkingSettings, ExtractionSettings
from parquetry.tasks.engine.fork_server import end_fork_server
from parquetry.tasks.engine.workers import WorkerPool

def pool():
    return WorkerPool(ExtractionSettings(workers=1), ChunkingSettings(), None)

def ask(pool, function, *arguments):
    return pool.result(pool._schedule(function, *arguments))

if __name__ == "__main__":
    first, second = pool(), pool()
    server = ask(first, os.getppid)
    first.close()
    end_fork_server()
    print(ask(second, os.getppid) == server)
    second.close()
    print(os.path.exists(f"/proc/{server}"))
    end_fork_server()
    end_fork_server()
    print(os.path.exists(f"/proc/{server}"))
    third = pool()
    print(ask(third, os.getppid) not in (server, os.getpid()), ask(third, os.getenv, "OPENAI_API_KEY"))
    third.close()
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc")
def test_server_stays_while_a_pool_needs_it_and_can_be_started_again(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(ENDING)
    environment = {
        **os.environ,
        "OPENAI_API_KEY": "sk-planted-1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    run = subprocess.run(
        [sys.executable, "-W", "error", str(file)], capture_output=True, text=True, env=environment, timeout=120
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.split() == ["True", "True", "False", "True", "None"]


def test_long_path_of_the_temporary_folder_stops_nothing(tmp_path):
    """A socket's path is limited to about a hundred bytes."""
    folder = tmp_path / ("long" * 20)
    folder.mkdir()
    file = tmp_path / "program.py"
    file.write_text(
        "import sys, tempfile\nfrom parquetry.tasks.engine.fork_server import start_fork_server\n"
        "if __name__ == '__main__':\n    start_fork_server()\n    print(tempfile.gettempdir())\n"
    )
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run([sys.executable, "-W", "error", str(file)], capture_output=True, text=True, env=environment)
    assert (run.returncode, run.stderr, run.stdout) == (0, "", f"{folder}\n")
    assert list(folder.iterdir()) == []
