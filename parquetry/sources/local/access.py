"""Access to the documents of a folder, from the settings, the layout and its `.parquetry.toml` files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import Field, ValidationError

from parquetry.errors import ParquetryError
from parquetry.model import Access, Visibility
from parquetry.settings import bounded_toml
from parquetry.settings.base import Section
from parquetry.settings.errors import explain
from parquetry.settings.small_file import read_small
from parquetry.sources.names import native

SIDECAR = ".parquetry.toml"
SHARED = "shared"
"""folder of the layout `agents` with the access of the source itself"""
_MAX_BYTES = 64 * 1024


class Sidecar(Section):
    """Content of a `.parquetry.toml` file, for the documents in its folder and below."""

    visibility: Visibility | None = Field(None, description="Who may see the documents.")
    org_id: str | None = Field(None, min_length=1, description="Needed for visibility `organization`.")
    user_id: str | None = Field(None, min_length=1, description="Needed for visibility `individual`.")
    tags: tuple[str, ...] | None = Field(None, description="Labels to filter by, instead of those from above.")


class UnclearAccess(ParquetryError):
    """The access to a folder cannot be determined; none of its documents may be listed."""


class FolderAccess:
    """Determines the access to the documents of a folder.

    Args:
        root: root folder of the source.
        access: access of documents without further specification.
        agents: every folder of the root belongs to the user of its name, except for `shared`; no file can then widen
            `access`.
    """

    def __init__(self, root: Path, access: Access, *, agents: bool) -> None:
        self._root = root
        self._access = access
        self._agents = agents
        self._known: dict[str, Access | UnclearAccess] = {}

    def of(self, folder: str) -> Access:
        """Return the access of the documents directly in a folder.

        Args:
            folder: path within the source; empty for the root.

        Raises:
            UnclearAccess: a `.parquetry.toml` in the folder or above is invalid.
        """
        if folder not in self._known:
            found: Access | UnclearAccess = self._access
            for place in _way_to(folder):
                if not isinstance(found, UnclearAccess):
                    found = self._known[place] if place in self._known else self._below(found, place)
                self._known[place] = found
        known = self._known[folder]
        if isinstance(known, UnclearAccess):
            raise known
        return known

    def _below(self, above: Access, folder: str) -> Access | UnclearAccess:
        if self._agents and folder and "/" not in folder:
            above = self._of_agent(folder, above)
        try:
            return self._with_sidecar(folder, above)
        except UnclearAccess as error:
            return error

    def _of_agent(self, folder: str, above: Access) -> Access:
        return above if folder == SHARED else replace(above, visibility="individual", user_id=folder)

    def _with_sidecar(self, folder: str, above: Access) -> Access:
        shown = f"{folder}/{SIDECAR}" if folder else SIDECAR
        said = _read(self._root / native(folder) / SIDECAR, shown)
        if said is None:
            return above
        try:
            sidecar = Sidecar.model_validate(said)
        except ValidationError as error:
            problems = "; ".join(explain(each, Sidecar) for each in error.errors())
            raise UnclearAccess(f"{shown}: {problems}") from error
        merged = replace(above, **sidecar.model_dump(exclude_none=True))
        _check(merged, sidecar, shown)
        if self._agents:
            self._check_narrower(merged, shown)
        return _without_leftovers(merged)

    def _check_narrower(self, access: Access, shown: str) -> None:
        """Refuse access wider than the settings allow: agents can write to their own folders."""
        allowed = self._access
        if allowed.visibility == "organization" and (
            access.visibility == "public" or (access.visibility == "organization" and access.org_id != allowed.org_id)
        ):
            raise UnclearAccess(
                f"{shown}: it would show more than the source allows, which is organization {allowed.org_id}; "
                "narrow it, or change the visibility of the source"
            )


def _way_to(folder: str) -> list[str]:
    """Return the folders from the root, which is the empty path, down to a folder."""
    steps = folder.split("/") if folder else []
    return ["/".join(steps[:depth]) for depth in range(len(steps) + 1)]


def _check(access: Access, sidecar: Sidecar, shown: str) -> None:
    if access.visibility == "organization" and not access.org_id:
        raise UnclearAccess(f'{shown}: visibility = "organization" needs org_id')
    if access.visibility == "individual" and not access.user_id:
        raise UnclearAccess(f'{shown}: visibility = "individual" needs user_id')
    # A named owner implies that access is restricted.
    if sidecar.user_id and access.visibility != "individual":
        raise UnclearAccess(f'{shown}: user_id says nothing here; add visibility = "individual"')
    if sidecar.org_id and access.visibility == "public":
        raise UnclearAccess(f'{shown}: org_id says nothing here; add visibility = "organization"')


def _without_leftovers(access: Access) -> Access:
    """Drop an inherited owner that does not apply to public documents or to a whole organization."""
    return replace(
        access,
        org_id=None if access.visibility == "public" else access.org_id,
        user_id=access.user_id if access.visibility == "individual" else None,
    )


def _read(file: Path, shown: str) -> Mapping[str, object] | None:
    """Read a sidecar; return None if there is none."""
    try:
        return bounded_toml.loads(read_small(file, _MAX_BYTES, anything=False).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnclearAccess(f"{shown} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UnclearAccess(f"{shown} is not valid TOML: {error}") from error
