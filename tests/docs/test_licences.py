"""The licences on the page are those of the installed packages, and an audit reports what it did not check."""

import json
import re
import runpy
import stat
import sys

import pytest

from tests.documentation import ROOT, text_of

LICENCES = runpy.run_path(str(ROOT / "docs" / "licences.py"))
AUDIT = runpy.run_path(str(ROOT / "docs" / "audit.py"))


@pytest.mark.slow
def test_page_names_every_package_with_copyleft_or_a_choice():
    """A newly pinned version may have another licence, or add a package with one."""
    stated = [LICENCES["licence_of"](package) for package in LICENCES["needed"]()]
    named = {each.package: (each.licence, ", ".join(each.carried)) for each in stated if each.is_named}
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \| ?(.*?) ?\|$", text_of("docs/licences.md"), re.MULTILINE)
    assert {package: (licence, carried) for package, licence, carried in rows} == named
    assert len(rows) == len(named)


def test_every_requirement_is_looked_at():
    needed = {re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower() for each in LICENCES["needed"]()}
    # Direct requirements, one of an extra, and indirect ones.
    assert {"duckdb", "prefect", "rapidocr", "adlfs", "gcsfs", "shapely", "urllib3", "cffi"} <= needed
    assert not {"pytest", "ruff", "hypothesis", "parquetry"} & needed


@pytest.mark.parametrize(
    ("fields", "stated", "named"),
    [
        ("License-Expression: MIT", "MIT", False),
        ("License-Expression: LGPL-3.0-only", "LGPL-3.0-only", True),
        ("License-Expression: MIT OR GPL-2.0-only", "MIT OR GPL-2.0-only", True),
        ("Classifier: License :: OSI Approved :: MIT License", "MIT License", False),
        ("Classifier: License :: OSI Approved\nLicense: MPL 2.0", "MPL 2.0", True),
        ("License: BSD", "BSD", False),
        ("Classifier: Topic :: Text", "unknown", True),
    ],
)
def test_what_a_package_states_is_found(fields, stated, named, tmp_path):
    from importlib.metadata import PathDistribution

    folder = tmp_path / "thing-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: Thing\nVersion: 1.0\n{fields}\n", "utf-8")
    found = LICENCES["licence_of"](PathDistribution(folder))
    assert (found.package, found.licence, found.is_named) == ("thing", stated, named)


def test_licence_of_a_library_inside_a_package_is_named(tmp_path):
    from importlib.metadata import PathDistribution

    folder = tmp_path / "thing-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.4\nName: thing\nVersion: 1.0\nLicense-Expression: MIT\n")
    (folder / "LICENSE_GEOS").write_text(
        "       GNU LESSER GENERAL PUBLIC LICENSE\n        Version 2.1, February 1999\n"
    )
    (folder / "RECORD").write_text("thing-1.0.dist-info/LICENSE_GEOS,,\n")
    found = LICENCES["licence_of"](PathDistribution(folder))
    assert found.carried == ("LGPL",)
    assert found.told == "MIT (carries texts of LGPL)"
    assert found.is_named


# --- audit


@pytest.fixture
def pip_audit(tmp_path):
    """Create a program that prints pip-audit's output."""

    def make(stdout, stderr="", code=0):
        program = tmp_path / "pip-audit"
        program.write_text(
            f"#!{sys.executable}\nimport sys\nprint({stdout!r})\nprint({stderr!r}, file=sys.stderr)\nsys.exit({code})\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return [str(program)]

    return make


def reply(*packages):
    return json.dumps({"dependencies": packages, "fixes": []})


GOOD = {"name": "a", "version": "1", "vulns": []}
BAD = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("printed", "lines", "code"),
    [
        (reply(GOOD), "1 packages were checked. Nothing is known against them.", 0),
        (reply(GOOD, SKIPPED), "1 packages were checked, not: c. Nothing is known against them.", 0),
        (
            reply(GOOD, BAD),
            "b 2: CVE-1, mended in 3\n2 packages were checked. 1 vulnerabilities are known.",
            1,
        ),
        (reply(SKIPPED, SKIPPED), "Nothing was checked: no vulnerability service can be reached from here.", 0),
    ],
)
def test_audit_fails_for_what_is_known_and_says_what_was_not_checked(pip_audit, printed, lines, code):
    """pip-audit reports nothing for packages that its service has never heard of."""
    assert AUDIT["audited"](pip_audit(printed, "No known vulnerabilities found")) == (lines, code)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Traceback\nrequests.exceptions.ConnectionError: HTTPSConnectionPool(host='a', port=443)", 0),
        ("requests.exceptions.ProxyError: no", 0),
        ("requests.exceptions.ReadTimeout: no", 0),
        ("pip-audit: error: unrecognized arguments: --foo", 1),
        ("ValueError: ConnectionError", 1),
        ("", 1),
    ],
)
def test_service_that_cannot_be_reached_is_told_and_any_other_failure_fails(pip_audit, said, code):
    lines, found = AUDIT["audited"](pip_audit("", said, 1))
    assert found == code
    assert ("no vulnerability service can be reached" in lines) == (code == 0)
    assert "443" not in lines


def test_audit_without_pip_audit_says_so(tmp_path):
    assert AUDIT["audited"]([str(tmp_path / "none")]) == (
        "Nothing was checked: pip-audit is not installed, and could not be.",
        0,
    )
