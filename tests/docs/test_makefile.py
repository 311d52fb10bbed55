"""`make` installs only when necessary."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.documentation import ROOT, text_of


@pytest.fixture
def checkout(tmp_path):
    """Create a checkout with an environment in the state that `make` leaves."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, tmp_path)
    bin_folder = tmp_path / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").symlink_to(sys.executable)
    _installed(tmp_path, '{"dir_info": {"editable": true}, "url": "file:///checkout"}')
    (tmp_path / ".venv" / ".installed").write_text(f"{tmp_path} {sys.version}\n", "utf-8")
    return tmp_path


def _installed(checkout, origin):
    """Install Parquetry in the environment, with pip's record of its origin."""
    notes = checkout / ".venv" / "lib" / "python3.11" / "site-packages" / "parquetry-0.1.0.dist-info"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "direct_url.json").write_text(origin, "utf-8")


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
    """The scripts in it refer to Python at the old path."""
    moved = checkout.rename(checkout.with_name("moved"))
    assert _would_install(moved)


def test_changed_requirements_are_installed(checkout):
    later = (checkout / ".venv" / ".installed").stat().st_mtime + 60
    os.utime(checkout / "pyproject.toml", (later, later))
    assert _would_install(checkout)


@pytest.mark.parametrize(
    "origin",
    [
        '{"dir_info": {}, "url": "file:///checkout"}',
        '{"dir_info": {"editable": false}, "url": "file:///checkout"}',
        '{"url":"file:///checkout","dir_info":{}}',
    ],
    ids=["pip", "pip-explicitly", "uv"],
)
def test_copy_of_the_code_in_the_environment_gives_way_to_the_checkout(checkout, origin):
    """`pip install .` leaves a copy in the same environment, which the tests would run instead of the checkout."""
    _installed(checkout, origin)
    assert _would_install(checkout)


def test_editable_install_by_uv_is_taken(checkout):
    _installed(checkout, '{"url":"file:///checkout","dir_info":{"editable":true}}')
    assert not _would_install(checkout)


@pytest.mark.parametrize("page", ["README.md", "docs/operators.md"])
def test_pages_install_the_checkout_and_no_copy_of_it(page):
    lines = re.findall(r"^.*pip install .*$", text_of(page), re.MULTILINE)
    local = [line for line in lines if "'.[" in line]
    assert local
    assert [line for line in local if "--editable" not in line] == []


def test_new_pins_are_installed_and_their_schedules_seen_to_fire(checkout):
    """A release with a broken scheduler in Prefect was once pinned, and no test noticed."""
    done = subprocess.run(
        ["make", "--dry-run", "constraints"], cwd=checkout, capture_output=True, text=True, check=True
    )
    # Under `make test`, make prints the folders that it enters and leaves.
    *_, last = [line for line in done.stdout.splitlines() if not line.startswith("make[")]
    assert "--output-file constraints.txt" in done.stdout
    assert last.startswith(".venv/bin/pytest")
    assert (ROOT / last.split()[-1]).is_file()


@pytest.mark.parametrize("target", ["licences", "audit"])
def test_what_is_installed_is_looked_at_by_a_command(checkout, target):
    done = subprocess.run(["make", "--dry-run", target], cwd=checkout, capture_output=True, text=True, check=True)
    assert f".venv/bin/python docs/{target}.py" in done.stdout
    assert (ROOT / "docs" / f"{target}.py").is_file()
