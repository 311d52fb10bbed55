"""Signals whose handlers raise where Python discards the exception."""

import subprocess
import sys

import pytest

PROGRAM = """
import signal, threading, weakref
from parquetry.swallowed_signals import send_swallowed_again

class Document:
    pass

def stop(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, stop)
send_swallowed_again(signal.SIGTERM, KeyboardInterrupt{more})
document, other = Document(), Document()
kept = weakref.ref(document, lambda _: signal.raise_signal(signal.SIGTERM))
failing = weakref.ref(other, lambda _: 1 / 0)
try:
    del document, other
    print("goes on", flush=True)
    threading.Event().wait({seconds})
    print("never heard", flush=True)
except KeyboardInterrupt:
    print("stopped")
"""


def outcome(more: str = "", seconds: int = 60) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(more=more, seconds=seconds)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_signal_that_was_swallowed_is_sent_again():
    done = outcome()
    assert done.stdout.split("\n") == ["goes on", "stopped", ""]
    # Other exceptions that Python discards are reported as ever.
    assert "ZeroDivisionError" in done.stderr
    assert "KeyboardInterrupt" not in done.stderr


def test_signal_that_nothing_handles_any_more_is_not_sent_again():
    assert outcome(", lambda: False", 1).stdout.split("\n") == ["goes on", "never heard", ""]


STOPPED = """
import signal, sys, threading, weakref
import {module} as command

class Document:
    pass

def swallow(*_):
    document = Document()
    kept = weakref.ref(document, lambda _: signal.raise_signal(signal.SIGTERM))
    del document
    threading.Event().wait(60)

command.{step} = swallow
from {program} import main
sys.argv[1:] = {arguments!r}
main()
"""


@pytest.mark.parametrize(
    ("module", "step", "program", "arguments", "outcome"),
    [
        ("parquetry.deployments.__main__", "load_settings", "parquetry.deployments.__main__", [], (130, "")),
        (
            "parquetry.serving.cli.watch_command",
            "_keep_fresh",
            "parquetry.serving.cli.main",
            ["watch", "."],
            (0, "Stopped.\n"),
        ),
    ],
    ids=["deployments", "watch"],
)
def test_command_ends_though_python_swallowed_the_signal(tmp_path, module, step, program, arguments, outcome):
    code = STOPPED.format(module=module, step=step, program=program, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[-len("Stopped.\n") :], done.stderr) == (*outcome, "")
