"""Runs `parquetry` commands one after the other in one process, which saves the time to start Python for each.

Reads one JSON list of arguments per line of stdin; writes exit code, stdout and stderr as JSON per line of stdout.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from parquetry.serving.cli.main import main


def run(arguments: list[str]) -> dict[str, int | str]:
    """Run one command as `main` runs it."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["parquetry", *arguments]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    return {"code": code, "stdout": out.getvalue(), "stderr": err.getvalue()}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
