"""Freed memory goes back to the system: heaps would keep it."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mallopt and malloc_trim are of the GNU C library")

BEGIN = """
import ctypes, gc
from parquetry.freed_memory import give_back, keep_little
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]

def block(size):
    place = library.malloc(size)
    ctypes.memset(place, 1, size)
    return place

def megabytes():
    with open("/proc/self/smaps_rollup") as told:
        return int(next(line for line in told if line.startswith("Rss")).split()[1]) // 1024

def take_and_free():
    # The first large block that is freed is the last that the library returns at once, by default.
    library.free(block(20_000_000))
    large = block(19_000_000)
    above = block(1000)
    library.free(large)

block(1000)
"""
SMALL_ONES = """
blocks = [block(100_000) for _ in range(300)]
last = block(100_000)
for each in blocks:
    library.free(each)
before = megabytes()
give_back()
print(before - megabytes())
"""
LARGE_ONES = """
before = megabytes()
take_and_free()
print(megabytes() - before)
"""


def freed(program: str) -> int:
    command = [sys.executable, "-c", BEGIN + program]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


def test_many_small_blocks_go_back_when_asked_for():
    assert freed(SMALL_ONES) > 20


def test_large_block_stays_in_a_heap_unless_a_program_keeps_little():
    assert freed(LARGE_ONES) > 15
    assert freed("keep_little()\n" + LARGE_ONES) < 5


@pytest.mark.parametrize(
    ("begin", "variable", "expected"),
    [("keep_little()", None, "system"), ("keep_little()", "mimalloc", "mimalloc"), ("pass", None, "mimalloc")],
    ids=["program", "variable of the user", "library"],
)
def test_arrow_of_a_program_takes_its_memory_from_the_c_library(begin, variable, expected):
    program = (
        f"from parquetry.freed_memory import keep_little\n{begin}\n"
        "import pyarrow\nprint(pyarrow.default_memory_pool().backend_name)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    if variable is not None:
        environment["ARROW_DEFAULT_MEMORY_POOL"] = variable
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert told.stdout.strip() == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["refresh", "--direct", "docs"], ["add", "docs/a.md"], ["reindex", "--all", "--direct"]],
    ids=["refresh", "add", "reindex"],
)
def test_arrow_of_a_run_takes_its_memory_from_the_c_library(tmp_path, command):
    """Its variable is read when PyArrow is imported, so a command sets it before it imports anything."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Boards\n\nCount them.\n")
    (tmp_path / "kb.toml").write_text('[corpus]\nroot = "corpus"\n[[source]]\nname = "docs"\nuri = "docs"\n')
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(sys.modules['pyarrow'].default_memory_pool().backend_name))\n"
        "from parquetry.serving.cli.main import run\nsys.exit(run(sys.argv[1:]))"
    )
    for arguments in (["refresh", "--direct"], command):
        command_line = [sys.executable, "-c", program, *arguments, "--config", "kb.toml"]
        told = subprocess.run(command_line, cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout.splitlines()[-1] == "system"
