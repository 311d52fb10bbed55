"""Runs `parquetry` commands one after the other in one process, which saves the time to start Python for each.

Reads one JSON list of arguments per line of stdin; writes exit code, stdout and stderr as JSON per line of stdout.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from parquetry.masked_output import guard_output
from parquetry.serving.cli.main import run


def answer(arguments: list[str]) -> dict[str, int | str]:
    """Run one command as `main` runs it, except that this process goes on."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        guard_output()
        code = run(arguments)
    return {"code": code, "stdout": out.getvalue(), "stderr": err.getvalue()}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
