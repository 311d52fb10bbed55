"""Requirements of an installation."""

import ast
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distributions, packages_distributions, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.documentation import ROOT
from tests.product_modules import ROOMS, product_modules

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def _name(requirement):
    return canonicalize_name(re.split(r"[\[<>=!; ]", requirement)[0])


def _imported(room):
    for file in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


@pytest.mark.parametrize("room", ROOMS)
def test_every_import_is_declared(room):
    """An import that only works through another package's dependency breaks one day."""
    declared = {_name(each) for each in PROJECT["project"]["dependencies"]}
    for extra in PROJECT["project"]["optional-dependencies"].values():
        declared |= {_name(each) for each in extra}
    owners = packages_distributions()
    # From 3.14 on; before that its backport is declared.
    library = {*sys.stdlib_module_names, "compression"}
    outside = set(_imported(room)) - library - {"parquetry"}
    unknown = {module for module in outside if not declared & set(map(canonicalize_name, owners.get(module, [])))}
    assert unknown == set()


def _of_extra(package, extra):
    """Yield the packages that an extra adds."""
    for each in map(Requirement, requires(package) or ()):
        if each.marker and each.marker.evaluate({"extra": extra}) and not each.marker.evaluate({"extra": ""}):
            yield canonicalize_name(each.name)


def test_extras_that_older_pip_does_not_find_are_declared():
    """Without `html_clean` of lxml no web page is read; pip before 23.3 compares extras as they are spelled."""
    declared = {canonicalize_name(_name(each)) for each in PROJECT["project"]["dependencies"]}
    needed = {
        name
        for distribution in distributions()
        for each in map(Requirement, distribution.requires or ())
        for extra in each.extras
        if canonicalize_name(extra) != extra
        for name in _of_extra(each.name, canonicalize_name(extra))
    }
    assert needed
    assert needed <= declared


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
    folders = {file.parent for _, file in product_modules()}
    assert len(folders) > 30
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_contract_of_the_package_itself_leaves_out_no_module():
    contracts = {each["name"]: each for each in PROJECT["tool"]["importlinter"]["contracts"]}
    # Integrations stand above the rooms.
    above = {f"parquetry.{room}" for room in (*ROOMS, "integrations")}
    own = {name for name, _ in product_modules() if name.count(".") == 1} - above
    assert set(contracts["the package itself imports no room"]["source_modules"]) == own


POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}


def _at_module_level(nodes):
    """Yield the statements that run when a module is imported."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield node
        yield from _at_module_level(ast.iter_child_nodes(node))


def test_nothing_posix_only_is_imported_at_module_level():
    """`docs/platforms.md` says so: every module can be imported on every system."""
    found = []
    for name, file in product_modules():
        for node in _at_module_level(ast.parse(file.read_text("utf-8")).body):
            imported = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [(name, each) for each in imported if each.partition(".")[0] in POSIX_ONLY]
    assert found == []


@pytest.mark.slow
def test_wheel_and_sdist_hold_parquetry_and_nothing_else(tmp_path):
    """Not top-level `storage` or `tasks`, which an operator's own folders would stand in the way of."""
    source = tmp_path / "source"
    for name in (*ROOMS, "tests", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    # The wheel is built from the sdist.
    build = [sys.executable, "-m", "build", "--outdir", str(tmp_path), str(source)]
    subprocess.run(build, capture_output=True, check=True, timeout=240)
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        installed = {name for name in archive.namelist() if ".dist-info/" not in name}
    modules = {
        f"{name.replace('.', '/')}{'/__init__' * (file.stem == '__init__')}.py" for name, file in product_modules()
    }
    prompts = {f"parquetry/sessions/{name}_prompt.md" for name in ("compare", "distill")}
    calibrations = {f"parquetry/ranking/calibrations/{name}" for name in ("questions.txt", "wordllama.json")}
    web = ROOT / "serving" / "web"
    pages = {
        f"parquetry/serving/web/{path.relative_to(web)}"
        for name in ("templates", "static")
        for path in web.glob(f"{name}/*")
    }
    assert len(pages) > 12
    assert installed == {*modules, *prompts, *calibrations, *pages, "parquetry/py.typed"}
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2].partition("/")[0] for name in archive.getnames()}
    assert held <= {
        "",
        "parquetry",
        "parquetry.egg-info",
        "MANIFEST.in",
        "pyproject.toml",
        "setup.cfg",
        "PKG-INFO",
        "README.md",
        "LICENSE",
    }
