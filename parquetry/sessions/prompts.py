"""Versioned prompts of session knowledge, which the settings may replace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from parquetry import ids
from parquetry.errors import SettingsError, first_line

PromptName = Literal["distill", "compare"]
_VERSION = re.compile(r"version: (\d+)\n+")


@dataclass(frozen=True, slots=True)
class Prompt:
    """Instructions for the model."""

    name: PromptName
    text: str
    version: str
    """`1-3fa2c811`: number and hash of the text; `custom-3fa2c811` for a prompt from the settings"""


def load_prompt(name: PromptName, file: str | None) -> Prompt:
    """Load the prompt for a purpose.

    Args:
        name: of the purpose.
        file: from the settings; None uses the prompt that comes with Parquetry.

    Raises:
        SettingsError: the file cannot be read, is not UTF-8, is empty, or is for comparing one statement at a time.
    """
    if file is None:
        whole = files("parquetry.sessions").joinpath(f"{name}_prompt.md").read_text("utf-8")
        version = _VERSION.match(whole)
        if version is None:
            raise ValueError(f"{name}_prompt.md does not begin with its version")
        text = whole[version.end() :].strip()
        return Prompt(name, text, f"{version[1]}-{ids.prompt_hash(text)}")
    try:
        text = Path(file).read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"sessions.{name}_prompt = {file!r} cannot be read: {first_line(error)}") from error
    if not text:
        raise SettingsError(f"sessions.{name}_prompt = {file!r} is empty: write the prompt, or remove the setting")
    if name == "compare" and "verdicts" not in text:
        raise SettingsError(
            f"sessions.{name}_prompt = {file!r} does not say that the reply has a list of `verdicts`, one for each "
            "statement of a question: take the form of the reply from docs/sessions-comparing.md, or remove the setting"
        )
    return Prompt(name, text, f"custom-{ids.prompt_hash(text)}")
