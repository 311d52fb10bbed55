"""What an installation brings along."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, requires

import pytest
from documentation import ROOT
from packaging.requirements import Requirement

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGES = ["knowledge", "storage", "tasks", "flows", "serving", "deployments"]


def _name(requirement):
    return re.split(r"[\[<>=!; ]", requirement)[0].lower().replace("_", "-")


def _imported(package):
    for file in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_import_is_declared(package):
    """What is only there because something else needs it is missing one day."""
    declared = {_name(each) for each in PROJECT["project"]["dependencies"]}
    for extra in PROJECT["project"]["optional-dependencies"].values():
        declared |= {_name(each) for each in extra}
    owners = packages_distributions()
    # From 3.14 on; before that its backport is declared.
    library = {*sys.stdlib_module_names, "compression"}
    outside = set(_imported(package)) - library - set(PACKAGES)
    unknown = {
        module
        for module in outside
        if not declared & {owner.lower().replace("_", "-") for owner in owners.get(module, [])}
    }
    assert unknown == set()


def test_every_requirement_is_pinned():
    pins = {_name(line) for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if "==" in line}
    project = PROJECT["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    wanted += [each for each in PROJECT["dependency-groups"]["dev"] if isinstance(each, str)]
    assert {_name(each) for each in wanted} <= pins


def test_no_dependency_of_prefect_is_without_an_upper_bound():
    """A release that nobody tried with Prefect broke its scheduler, and nothing but the server's log said so."""
    bounded = {
        requirement.name.lower().replace("_", "-")
        for requirement in map(Requirement, [*PROJECT["project"]["dependencies"], *requires("prefect")])
        if requirement.marker is None or "extra" not in str(requirement.marker)
        if any(part.operator in ("<", "<=", "==", "~=") for part in requirement.specifier)
    }
    needed = [each for each in map(Requirement, requires("prefect")) if "extra" not in str(each.marker)]
    assert len(needed) > 40
    assert {each.name for each in needed} - bounded == set()
    # Prefect bounds this one too high.
    (sqlalchemy,) = [each for each in map(Requirement, PROJECT["project"]["dependencies"]) if each.name == "sqlalchemy"]
    assert not sqlalchemy.specifier.contains("2.1.0")


def test_every_folder_with_code_is_a_package():
    """setuptools leaves out a folder without `__init__.py`, and nobody notices in a checkout."""
    patterns = PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    assert sorted(pattern.rstrip("*") for pattern in patterns) == sorted(PACKAGES)
    for package in PACKAGES:
        for folder in {file.parent for file in (ROOT / package).rglob("*.py")}:
            assert (folder / "__init__.py").exists(), folder
