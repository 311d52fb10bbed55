"""Asks a vulnerability service about every pinned package, by pip-audit, and says what came of it.

Ends well when nothing is known against them, and when no service can be reached: then it says that nothing was checked.
pip-audit itself says "no known vulnerabilities" of packages that the service does not know.

    make audit
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PINS = Path(__file__).parents[1] / "constraints.txt"
_OPTIONS = ("--no-deps", "--disable-pip", "--progress-spinner", "off", "--desc", "off", "--format", "json")
_UNREACHED = re.compile(r"\b(\w*Connection\w*|ProxyError|\w*Timeout|\w*SSLError|ServiceError)\b")
"""names of errors in the last line of pip-audit, when the service does not answer"""
_NOTHING = "Nothing was checked: no vulnerability service can be reached from here."


def audited(program: Sequence[str], pins: Path = PINS) -> tuple[str, int]:
    """Known vulnerabilities of pinned packages, from a vulnerability service.

    Args:
        program: that is pip-audit, with what comes before its options.
        pins: file of requirements, each of one version.

    Returns:
        Lines for a person, and an exit code: 0 if nothing is known or nothing could be asked, 1 if something is known
        or pip-audit failed.
    """
    try:
        done = subprocess.run(
            [*program, "--requirement", str(pins), *_OPTIONS], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return "Nothing was checked: pip-audit is not installed, and could not be.", 0
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return (_NOTHING, 0) if _UNREACHED.search(last.partition(": ")[0]) else (f"pip-audit failed: {last}", 1)
    return _told(packages)


def _told(packages: Sequence[dict[str, Any]]) -> tuple[str, int]:
    asked = [each for each in packages if "skip_reason" not in each]
    found = [
        f"{each['name']} {each['version']}: {known['id']}, mended in {', '.join(known['fix_versions']) or 'no version'}"
        for each in asked
        for known in each["vulns"]
    ]
    if not asked:
        return _NOTHING, 0
    unknown = [each["name"] for each in packages if "skip_reason" in each]
    about = f"{len(asked)} packages were checked" + (f", not: {', '.join(unknown)}" if unknown else "")
    if not found:
        return f"{about}. Nothing is known against them.", 0
    return "\n".join([*found, f"{about}. {len(found)} vulnerabilities are known."]), 1


def main() -> int:
    """Print what was found."""
    lines, code = audited(sys.argv[1:] or ["pip-audit"])
    print(lines)  # noqa: T201
    return code


if __name__ == "__main__":
    sys.exit(main())
