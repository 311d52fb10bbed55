"""Models of the Hugging Face Hub: the settings of `[hub]`, and the names of models."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, SecretStr, field_validator

from parquetry.errors import SettingsError
from parquetry.known_secrets import announce
from parquetry.settings.addresses import plain_url
from parquetry.settings.base import LONGEST_WAIT, MOST_BYTES, Section
from parquetry.settings.home import user_cache

DEFAULT_REVISION = "main"
TOKEN_VARIABLE = "HF_TOKEN"  # noqa: S105 - the name of a variable
OFFLINE_VARIABLE = "HF_HUB_OFFLINE"
_ADDRESS_VARIABLE = "HF_ENDPOINT"
_PUBLIC = "https://huggingface.co"
_TRUE = {"1", "on", "yes", "true"}
_SCHEME = "hf://"
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.))*"
_FORM = re.compile(
    rf"(?P<repository>{_PART}/{_PART})(?:@(?P<revision>{_PART}))?(?:/(?P<file>(?:{_PART}/)*{_PART}\.onnx))?"
)
_NO_OWNERS = {"models", "datasets", "spaces", "kernels", "buckets"}
"""first parts of addresses on the hub, which no account has as its name"""
_COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model of the hub, named as `owner/name`, `owner/name@revision` or `owner/name/onnx/model_O2.onnx`."""

    repository: str
    """`owner/name`"""
    revision: str | None
    """commit, tag or branch; None for the default branch as it was when the model was first fetched"""
    file: str | None
    """path of the `.onnx` file in the repository; None for the usual one"""

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        return f"{self.repository}{revision}{'/' + self.file if self.file else ''}"

    @property
    def address(self) -> str:
        """The name in the form that no folder can have."""
        return f"{_SCHEME}{self}"

    @property
    def asked(self) -> str:
        """The revision to ask the hub for."""
        return self.revision or DEFAULT_REVISION


def hub_model(name: str, base: Path | None = None) -> HubModel | None:
    """Return the model of the hub that a setting names; None if it names a folder.

    Args:
        name: what follows `onnx:`.
        base: folder that relative places are relative to; None for the working folder.

    Raises:
        SettingsError: it begins with `hf://`, and what follows is no name of a model.
    """
    explicit = name.startswith(_SCHEME)
    found = _FORM.fullmatch(name.removeprefix(_SCHEME))
    owner, _, model = found["repository"].partition("/") if found is not None else ("", "", "")
    if found is None or owner in _NO_OWNERS or model.endswith(".onnx"):
        if explicit:
            raise SettingsError(
                f"onnx:{name} is no model of the hub; write onnx:owner/name or onnx:owner/name@revision"
            )
        return None
    here = base or Path()
    if not explicit and ((here / name).exists() or (here / owner).exists()):
        return None
    return HubModel(found["repository"], found["revision"], found["file"])


def model_name(name: str) -> str:
    """Return an embedder or a reranker of the settings without the place of its folder."""
    kind, _, model = name.partition(":")
    if kind != "onnx":
        return name
    found = hub_model(model)
    return f"onnx:{model.replace(os.sep, '/').rstrip('/').rpartition('/')[2] if found is None else found}"


def is_commit(revision: str) -> bool:
    """Return True if a revision is a whole commit hash, which can never mean another one."""
    return _COMMIT.fullmatch(revision) is not None


class HubSettings(Section):
    """Models named as `onnx:owner/name`, which are fetched from the Hugging Face Hub once."""

    url: str | None = Field(
        None,
        examples=[_PUBLIC],
        description=f"Address of the hub, or of a mirror; default `{_ADDRESS_VARIABLE}`, else `{_PUBLIC}`.",
    )
    token: SecretStr | None = Field(
        None,
        examples=["hf_..."],
        description=f"For private and gated models; default `{TOKEN_VARIABLE}`; keep it out of the file.",
    )
    cache: str | None = Field(
        None,
        examples=["/var/cache/parquetry/models"],
        description="Folder of fetched models; default: in the user's cache.",
    )
    offline: bool = Field(
        False,
        description=f"Never ask the hub: models are in the cache, or missing. `{OFFLINE_VARIABLE}=1` does the same.",
    )
    max_bytes: int = Field(
        4 * 1024**3,
        ge=1,
        le=MOST_BYTES,
        description="A model that has more, with all files that it needs, is not fetched.",
    )
    timeout_seconds: int = Field(30, ge=1, le=LONGEST_WAIT, description="Longest silence of the hub.")

    @field_validator("url")
    @classmethod
    def _plain_url(cls, value: str | None) -> str | None:
        return None if value is None else plain_url(value, _PUBLIC)

    @property
    def address(self) -> str:
        """The address of the hub, from the settings or the environment.

        Raises:
            SettingsError: the environment names what is no address.
        """
        if self.url is not None:
            return self.url
        try:
            return plain_url(os.environ.get(_ADDRESS_VARIABLE) or _PUBLIC, _PUBLIC)
        except ValueError as error:
            raise SettingsError(f"the environment variable {_ADDRESS_VARIABLE} {error}") from error

    @property
    def key(self) -> str:
        """The token, from the settings or the environment; empty if there is none."""
        found = os.environ.get(TOKEN_VARIABLE, "") if self.token is None else self.token.get_secret_value()
        announce(found)
        return found.strip()

    @property
    def folder(self) -> Path:
        """The cache."""
        return user_cache() / "models" if self.cache is None else Path(self.cache)

    @property
    def offline_by(self) -> str | None:
        """The switch that keeps the hub from being asked; None if it may be."""
        if self.offline:
            return "offline in [hub]"
        return OFFLINE_VARIABLE if os.environ.get(OFFLINE_VARIABLE, "").strip().lower() in _TRUE else None


NO_HUB = HubSettings(offline=True)
"""settings of callers that need no model of the hub"""
