"""Running the command line the way a person does, for tests of several commands."""

import subprocess
import sys

COUNTS = ["scanned", "added", "changed", "moved", "permissions", "unchanged", "removed", "failed", "skipped"]
PROGRAM = "import sys; sys.path[:0] = {path!r}; from parquetry.serving.cli.main import main; main()"


def command(*arguments):
    """The real program, in a process of its own."""
    return [sys.executable, "-c", PROGRAM.format(path=[*filter(None, sys.path)]), *map(str, arguments)]


def start(*arguments, **options):
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, **options)


def settle(desk):
    """Publish what the copied folder's new place changes, so that a test sees its own changes alone."""
    assert desk("refresh", "--direct").code == 0


def found(desk, query, *options):
    return [each["text"] for each in desk("search", query, "--mode", "text", "--json", *options).json["results"]]
