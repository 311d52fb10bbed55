"""`make` installs when it has to and only then."""

import os
import shutil
import subprocess
import sys

import pytest
from documentation import ROOT


@pytest.fixture
def checkout(tmp_path):
    """A checkout with an environment that is as `make` left it."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, tmp_path)
    bin_folder = tmp_path / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").symlink_to(sys.executable)
    (tmp_path / ".venv" / ".installed").write_text(f"{tmp_path} {sys.version}\n", "utf-8")
    return tmp_path


def _would_install(checkout):
    done = subprocess.run(["make", "--dry-run", "demo"], cwd=checkout, capture_output=True, text=True, check=True)
    assert "examples/demo.py" in done.stdout
    return "pip" in done.stdout


def test_environment_that_is_there_is_taken(checkout):
    assert not _would_install(checkout)


def test_environment_without_python_is_made_anew(checkout):
    (checkout / ".venv" / "bin" / "python").unlink()
    assert _would_install(checkout)


def test_environment_of_another_python_is_made_anew(checkout):
    stamp = checkout / ".venv" / ".installed"
    stamp.write_text(stamp.read_text("utf-8").replace(sys.version.split()[0], "3.99.0"), "utf-8")
    assert _would_install(checkout)


def test_environment_that_was_moved_is_made_anew(checkout):
    """The scripts in it name the Python of the old place."""
    moved = checkout.rename(checkout.with_name("moved"))
    assert _would_install(moved)


def test_changed_requirements_are_installed(checkout):
    later = (checkout / ".venv" / ".installed").stat().st_mtime + 60
    os.utime(checkout / "pyproject.toml", (later, later))
    assert _would_install(checkout)
