"""List the licences of all run-time dependencies, as the installed packages state them.

Licences with duties for redistribution beyond keeping a notice (LGPL, MPL, GPL, ...), and those that offer a choice,
come first: `docs/licences.md` records them, and a test compares.

    make licences
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

ROOT = "parquetry"
EXTRAS = ("ocr", "office", "heic", "sevenzip", "onnx", "hub", "azure", "gcs", "serve", "dask", "ray", "otel")
_COPYLEFT = re.compile(r"\b[AL]?GPL|\bMPL|\bEPL|\bEUPL|\bCDDL|\bCC-BY-SA|General Public|Mozilla Public|Eclipse Public")
_CHOICE = re.compile(r"\bOR\b|\bor\b|dual", re.IGNORECASE)
_TEXTS = {
    "LGPL": re.compile(r"GNU (?:LESSER|LIBRARY) GENERAL PUBLIC LICENSE Version \d"),
    "GPL": re.compile(r"GNU GENERAL PUBLIC LICENSE Version \d"),
    "MPL": re.compile(r"Mozilla Public License Version \d"),
}
"""opening words of a licence text"""
_FILES = re.compile(r"licen|copying|notice", re.IGNORECASE)
UNKNOWN = "unknown"
_LONG = 80
"""characters of a field in which some packages keep the whole text of their licence"""


@dataclass(frozen=True, slots=True)
class Licence:
    """Licence that a package states."""

    package: str
    version: str
    licence: str
    """SPDX expression, classifiers or text, whichever is told first; UNKNOWN if nothing is"""

    carried: tuple[str, ...]
    """copyleft licences whose text comes with the package, of libraries inside it"""

    @property
    def is_named(self) -> bool:
        """True if the licence or a part is copyleft, offers a choice, or is not stated."""
        stated = _COPYLEFT.search(self.licence) or _CHOICE.search(self.licence) or self.licence == UNKNOWN
        return bool(stated or self.carried)

    @property
    def told(self) -> str:
        """Stated licence, with those of bundled parts."""
        return self.licence + (f" (carries texts of {', '.join(self.carried)})" if self.carried else "")


def needed(root: str = ROOT, extras: tuple[str, ...] = EXTRAS) -> list[Distribution]:
    """Every package that one needs in this environment, itself left out, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    todo = [(root, extra) for extra in ("", *extras)]
    while todo:
        asked = todo.pop()
        if asked in seen:
            continue
        seen.add(asked)
        name, extra = asked
        package = distribution(name)
        found[name] = package
        for line in package.requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                todo += [(_normal(requirement.name), each) for each in ("", *requirement.extras)]
    del found[root]
    return [found[name] for name in sorted(found)]


def licence_of(package: Distribution) -> Licence:
    """Return the licence that a package states."""
    name = _normal(package.metadata["Name"])
    stated = " ".join(next(_stated(package), UNKNOWN).split())
    own = _COPYLEFT.search(stated)
    return Licence(name, package.version, stated, () if own else tuple(_carried(package)))


def _stated(package: Distribution) -> Iterator[str]:
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        yield expression
    classifiers = [each.rpartition(" :: ")[2] for each in metadata.get_all("Classifier", ()) if "License ::" in each]
    classifiers = [each for each in classifiers if each != "OSI Approved"]
    if classifiers:
        yield "; ".join(sorted(classifiers))
    text = (metadata.get("License") or "").strip()
    if text:
        yield text if len(text) <= _LONG else text.splitlines()[0][:_LONG]


def _carried(package: Distribution) -> Iterator[str]:
    files = [
        each for each in package.files or () if _FILES.search(each.name) and each.suffix in ("", ".txt", ".rst", ".md")
    ]
    texts = [" ".join((package.locate_file(each)).read_text("utf-8", "replace").split()) for each in files]
    for name, beginning in _TEXTS.items():
        if any(beginning.search(text) for text in texts):
            yield name


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Print the list."""
    try:
        licences = [licence_of(package) for package in needed()]
    except PackageNotFoundError as error:
        print(f"{error.name} is not installed; `make` installs everything", file=sys.stderr)  # noqa: T201
        return 1
    named = [each for each in licences if each.is_named]
    width = max(len(each.package) for each in licences)
    print(f"Of {len(licences)} packages, {len(named)} with copyleft, a choice, or no statement:\n")  # noqa: T201
    for part in (named, [each for each in licences if not each.is_named]):
        for each in part:
            print(f"{each.package:<{width}}  {each.version:<12}  {each.told}")  # noqa: T201
        print()  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
