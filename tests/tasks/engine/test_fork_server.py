"""The environment of the extraction processes holds no secret of the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parquetry.tasks.engine.fork_server import needed

PROGRAM = """
import os, sys, time
from pathlib import Path
from parquetry.settings.sections import ChunkingSettings, ExtractionSettings
from parquetry.tasks.engine.workers import WorkerPool

if __name__ == "__main__":
    pool = WorkerPool(ExtractionSettings(workers=1), ChunkingSettings(), None)
    ask = lambda function, *arguments: pool.result(pool._schedule(function, *arguments))
    worker, server = ask(os.getpid), ask(os.getppid)
    assert server != os.getpid()
    for process in (worker, server):
        print(Path(f"/proc/{process}/environ").read_bytes())
    print(ask(os.getenv, "OPENAI_API_KEY"), ask(os.getenv, "DATABASE_URL"), ask(os.getenv, "LANG"))
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
    *environments, told, own = run.stdout.splitlines()
    assert [len(environments), told, own] == [2, "None None C.UTF-8", "sk-planted-1"]
    assert all("LANG=C.UTF-8" in each and "planted" not in each for each in environments)


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


def test_what_is_needed_is_kept_unless_its_name_is_that_of_a_secret():
    told = {"PATH": "/bin", "LC_ALL": "C", "OMP_NUM_THREADS": "2", "PYTHON_KEYRING_PASSWORD": "x", "AWS_PROFILE": "y"}
    assert needed(told) == {"PATH": "/bin", "LC_ALL": "C", "OMP_NUM_THREADS": "2"}


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
