"""Logs, warnings and tracebacks hold no secret, regardless of their origin and destination."""

import logging
import subprocess
import sys
import threading
import warnings

import pytest

from parquetry.errors import BrokenDocument, ParquetryError, SettingsError
from parquetry.masked_output import guard_output, masked_errors
from tests.flows.pipelines.test_planted_secrets import KEY

PROGRAM = """
import logging, sys, threading, warnings
from parquetry.masked_output import guard_output
guard_output()
guard_output()
logging.basicConfig(level="DEBUG")
log = logging.getLogger("of.a.library")
log.info("asked with %s", {"Authorization": sys.argv[1]})
log.info(sys.argv[1])
log.info("no place for %s")
log.info("does not fit %d", sys.argv[1])
warnings.warn("used " + sys.argv[1])
def fail():
    try:
        raise ValueError("inner " + sys.argv[1])
    except ValueError as error:
        raise OSError("outer " + sys.argv[1]) from error
try:
    fail()
except OSError:
    log.exception("broke")
thread = threading.Thread(target=fail)
thread.start()
thread.join()
class Fails:
    def __del__(self):
        fail()
Fails()
fail()
"""


def test_nothing_that_a_process_says_of_itself_holds_a_token_of_the_service():
    """The process was never told of the token: it is known by its form."""
    token = "pqt_4cNHjx1SEGJaSUgMHf6ItwZIIBPsRu3HrH6cW20tuSGP3XUmPq"
    run = subprocess.run([sys.executable, "-c", PROGRAM, token], capture_output=True, text=True, env={}, check=False)
    lines = [line for line in run.stderr.splitlines() if not line.startswith("Arguments: ")]
    assert token[4:20] not in "\n".join(lines)
    assert run.stderr.count("outer pqt_***") == 4
    assert any("UserWarning: used pqt_***" in line for line in lines)


def test_nothing_that_a_process_says_of_itself_holds_a_secret():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, KEY], capture_output=True, text=True, env={"OPENAI_API_KEY": KEY}, check=False
    )
    assert run.returncode == 1
    assert run.stdout == ""
    assert "does not fit" in run.stderr
    lines = [line for line in run.stderr.splitlines() if not line.startswith("Arguments: ")]
    assert KEY not in "\n".join(lines)
    assert run.stderr.count("outer ***") == 4
    assert run.stderr.count("inner ***") == 4
    assert "INFO:of.a.library:asked with {'Authorization': '***'}" in lines
    assert "INFO:of.a.library:no place for %s" in lines
    assert any("UserWarning: used ***" in line for line in lines)


@pytest.fixture
def guarded(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for place, name in (
        (sys, "excepthook"),
        (sys, "unraisablehook"),
        (threading, "excepthook"),
        (warnings, "formatwarning"),
    ):
        monkeypatch.setattr(place, name, getattr(place, name))
    made = logging.getLogRecordFactory()
    logging.setLogRecordFactory(logging.LogRecord)
    guard_output()
    yield
    logging.setLogRecordFactory(made)


def test_record_is_masked_whatever_a_handler_makes_of_it(guarded):
    record = logging.getLogger("any").makeRecord("any", logging.INFO, "f.py", 1, "said %s", (KEY,), None)
    assert KEY not in str(record.__dict__)
    plain = logging.getLogger("any").makeRecord("any", logging.INFO, "f.py", 1, "%d of %d", (1, 2), None)
    assert plain.args == (1, 2)


def test_error_is_masked_before_it_leaves_a_flow(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    error = ValueError(f"outer {KEY}")
    error.add_note(f"note {KEY}")
    error.__cause__ = KeyError(f"inner {KEY}")
    with pytest.raises(ValueError, match="outer") as raised, masked_errors():
        raise error
    assert raised.value.args == ("outer ***",)
    assert raised.value.__notes__ == ["note ***"]
    assert raised.value.__cause__.args == ("inner ***",)


@pytest.mark.parametrize("error", [ParquetryError, SettingsError, lambda text: BrokenDocument("damaged", text)])
def test_error_of_ours_never_holds_a_secret(monkeypatch, error):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = error(f"the service said {KEY}")
    made.add_note(f"and {KEY}")
    assert KEY not in f"{made!r} {made} {made.args} {made.__dict__}"
