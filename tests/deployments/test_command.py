"""Wrong arguments of the deployment commands: one line, and exit code 2."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminal_signs import obeyed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(("parquetry.deployments", "--port", "70000"), "less than or equal to 65535", id="port"),
        pytest.param(("parquetry.deployments", "--port=-1"), "greater than or equal to 1", id="negative-port"),
        pytest.param(("parquetry.deployments", "--a\x1b[2J\nparquetry: forged"), "No such option", id="option"),
        pytest.param(
            ("parquetry.deployments", "--config", "/dev/zero"), "has more than 4194304 bytes", id="endless-settings"
        ),
        pytest.param(("parquetry.deployments", "--config", b"caf\xe9"), r"caf\u{dce9} does not exist", id="no-utf-8"),
        pytest.param(("parquetry.deployments.notifications",), "Missing argument 'URL'", id="no-address"),
        pytest.param(
            ("parquetry.deployments.notifications", "https://a.example", "--event", "x"),
            "'x' is no event of Parquetry; these are: parquetry.published, ",
            id="event",
        ),
        pytest.param(("parquetry.deployments.wakeups", "docs"), "PREFECT_API_URL is not set", id="no-server"),
        pytest.param(
            ("parquetry.deployments.notifications", "ftp://[\x1b[2J"), "is not the address of a webhook", id="address"
        ),
    ],
)
def test_wrong_argument_is_one_line(arguments, problem, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        check=False,
        timeout=120,
    )
    told = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    assert told.startswith("parquetry: ")
    assert not obeyed(told.removesuffix("\n"))
    assert problem in told
