"""Runs the command line as a user does, for tests of several commands."""

import subprocess
import sys

COUNTS = ["scanned", "added", "changed", "moved", "permissions", "unchanged", "removed", "failed", "skipped"]
PROGRAM = "import sys; sys.path[:0] = {path!r}; from parquetry.serving.cli.main import main; main()"


def command(*arguments):
    """Return the command line of the real program in a separate process."""
    return [sys.executable, "-c", PROGRAM.format(path=[*filter(None, sys.path)]), *map(str, arguments)]


def start(*arguments, **options):
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, **options)


def settle(desk):
    """Publish the changes due to the copied folder's new path, so that a test sees only its own changes."""
    assert desk("refresh", "--direct").code == 0


def found(desk, query, *options):
    return [each["text"] for each in desk("search", query, "--mode", "text", "--json", *options).json["results"]]
