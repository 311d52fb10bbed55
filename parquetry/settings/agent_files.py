"""Sources for the knowledge of agents: the `knowledge` array of character files, as agent frameworks write them.

Reading and deciding are apart from writing: `plan_sources` returns the sources and the texts to keep as files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from parquetry import ids
from parquetry.errors import SettingsError
from parquetry.model import Visibility
from parquetry.settings.small_file import read_small

_MAX_BYTES = 32 * 1024 * 1024
"""maximum bytes of an agent file"""
TEXTS_FOLDER = "knowledge"
"""folder beside the settings file that holds the texts, one folder for each agent"""
_NAME_WORDS, _NAME_CHARACTERS = 6, 60
"""maximum number of words and characters of a text used for its file name"""
_FORMS = (
    'a text, {"path": ...}, {"directory": ...}, or {"item": {"case": "path" or "directory", "value": ...}}, '
    'each object with an optional "shared"'
)

Case = Literal["text", "path", "directory"]


@dataclass(frozen=True, slots=True)
class KnowledgeItem:
    """One item of a `knowledge` array."""

    case: Case
    value: str
    """the text, or the path as it is written"""
    shared: bool
    """True for what others may see, too"""
    origin: str
    """file and key, for messages"""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent and its knowledge."""

    name: str
    user_id: str
    """its id; its name if it has none"""
    file: Path
    items: tuple[KnowledgeItem, ...]


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A source to write into the settings."""

    name: str
    uri: str
    """relative to the folder of the settings, if that is possible"""
    visibility: Visibility
    user_id: str | None
    org_id: str | None

    def as_toml(self) -> dict[str, Any]:
        """Return the keys of the `[[source]]` table."""
        keys = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in keys.items() if value is not None}


@dataclass(frozen=True, slots=True)
class PlannedText:
    """A text to keep as a file."""

    file: Path
    text: str


@dataclass(frozen=True, slots=True)
class KnowledgePlan:
    """Sources to write, and texts to keep where they find them."""

    sources: tuple[PlannedSource, ...]
    texts: tuple[PlannedText, ...]


def read_agent(file: Path) -> Agent:
    """Read the knowledge of an agent file.

    Raises:
        SettingsError: the file cannot be read, or an item has no known form; the message names it.
    """
    try:
        content = json.loads(read_small(file, _MAX_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"agent file {file} cannot be read: {error.strerror}") from error
    except RecursionError:
        raise SettingsError(f"agent file {file} is nested too deep") from None
    except ValueError as error:
        raise SettingsError(f"agent file {file} is not JSON in UTF-8: {error}") from error
    if not isinstance(content, dict):
        raise SettingsError(f"agent file {file} holds no object; an agent is one with name and knowledge")
    name = _named(content, "name") or _named(content, "id")
    if name is None:
        raise SettingsError(f"agent file {file} has neither name nor id; its private knowledge needs an owner")
    knowledge = content.get("knowledge", [])
    if not isinstance(knowledge, list):
        raise SettingsError(f"agent file {file}: knowledge is no array; it holds {_FORMS}")
    items = tuple(_item(each, f"{file}: knowledge[{number}]") for number, each in enumerate(knowledge))
    return Agent(name, _named(content, "id") or name, file, items)


def _named(content: dict[str, Any], key: str) -> str | None:
    value = content.get(key)
    return value if isinstance(value, str) and value.strip() and _is_writable(value) else None


def _item(item: Any, origin: str) -> KnowledgeItem:
    if isinstance(item, str):
        return _checked("text", item, False, origin)
    if isinstance(item, dict) and isinstance(item.get("item"), dict):
        inner = item["item"]
        _only(item, ("item", "shared"), origin)
        _only(inner, ("case", "value"), f"{origin}.item")
        case, value = inner.get("case"), inner.get("value")
        shared = item.get("shared", False)
        if isinstance(value, dict):
            _only(value, (case, "path", "directory", "shared"), f"{origin}.item.value")
            shared = value.get("shared", shared)
            value = value.get(case, value.get("path"))
        return _checked(case, value, shared, origin)
    cases: tuple[Case, ...] = ("path", "directory")
    given = [case for case in cases if isinstance(item, dict) and case in item]
    if len(given) != 1:
        raise SettingsError(f"{origin} has no known form; an item is {_FORMS}")
    _only(item, (given[0], "shared"), origin)
    return _checked(given[0], item[given[0]], item.get("shared", False), origin)


def _only(keys: dict[str, Any], known: Sequence[str], origin: str) -> None:
    unknown = next((key for key in keys if key not in known), None)
    if unknown is not None:
        raise SettingsError(f"{origin} has an unknown key {unknown[:40]!r}; an item is {_FORMS}")


def _checked(case: Any, value: Any, shared: Any, origin: str) -> KnowledgeItem:
    if case not in ("text", "path", "directory"):
        raise SettingsError(f"{origin} has an unknown case; an item is {_FORMS}")
    if not isinstance(shared, bool):
        raise SettingsError(f"{origin}: shared is neither true nor false")
    if not isinstance(value, str) or not value.strip() or not _is_writable(value) or (case != "text" and "\0" in value):
        raise SettingsError(f"{origin}: its {case} is empty or no text")
    return KnowledgeItem(case, value, shared, origin)


def _is_writable(text: str) -> bool:
    """Return False for half a character pair, which JSON can hold and no file can."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def plan_sources(agents: Sequence[Agent], folder: Path, org_id: str | None) -> KnowledgePlan:
    """Return the sources for the knowledge of agents.

    What is shared is public, or visible to the organization if there is one; all else only to its agent. A relative
    path is one below the agent's file or, if there is none, below the working folder.

    Args:
        agents: the agents.
        folder: folder of the settings file.
        org_id: organization that shared knowledge is for; None for everybody.

    Raises:
        SettingsError: a path does not exist, two owners claim one place, or there is no knowledge.
    """
    sources: dict[str, PlannedSource] = {}
    texts: list[PlannedText] = []
    names: set[str] = set()
    for agent in agents:
        for item in agent.items:
            place, stem = _place(agent, item, folder, texts)
            seen = _access(agent, item, org_id)
            known = sources.get(place)
            if known is None:
                name = _unused(stem if item.shared else f"{_slug(agent.name)}-{stem}", names)
                sources[place] = PlannedSource(name, _uri(place, folder), *seen)
            elif (known.visibility, known.user_id, known.org_id) != seen:
                raise SettingsError(
                    f"{item.origin}: {item.value} is also knowledge of others, as source {known.name}, and not for the "
                    "same audience; share it in all agent files, or give each agent its own copy"
                )
    if not sources:
        raise SettingsError(f"{', '.join(str(agent.file) for agent in agents)}: there is no knowledge in it")
    return KnowledgePlan(tuple(sources.values()), tuple(texts))


def _access(agent: Agent, item: KnowledgeItem, org_id: str | None) -> tuple[Visibility, str | None, str | None]:
    if not item.shared:
        return "individual", agent.user_id, None
    return ("public", None, None) if org_id is None else ("organization", None, org_id)


def _place(agent: Agent, item: KnowledgeItem, folder: Path, texts: list[PlannedText]) -> tuple[str, str]:
    """Return the absolute place of an item, and a stem for the name of its source; note a text to be written."""
    if item.case == "text":
        own = folder / TEXTS_FOLDER / _slug(agent.name)
        texts.append(PlannedText(own / _file_name(item.value), item.value))
        return str(own.absolute()), "texts"
    if "://" in item.value:
        return item.value, _slug(item.value.rstrip("/").rpartition("/")[2])
    tried = list(dict.fromkeys(base / item.value for base in _bases(agent)))
    found = next((path for path in tried if path.exists()), None)
    if found is None:
        raise SettingsError(f"{item.origin}: {' and '.join(map(str, tried))} {_missing(len(tried))}")
    if found.is_dir() != (item.case == "directory"):
        raise SettingsError(f"{item.origin}: {found} is {'a' if found.is_dir() else 'no'} folder; correct the item")
    return os.path.realpath(found), _slug(found.resolve().name)


def _missing(tried: int) -> str:
    return "does not exist" if tried == 1 else "do not exist"


def _bases(agent: Agent) -> Iterator[Path]:
    yield agent.file.absolute().parent
    yield Path.cwd()


def _uri(place: str, folder: Path) -> str:
    if "://" in place:
        return place
    try:
        relative = os.path.relpath(place, os.path.realpath(folder))
    except ValueError:
        # Another drive of Windows.
        return Path(place).as_posix()
    below = Path(relative).as_posix()
    return below if below.startswith("..") else f"./{below}"


def _file_name(text: str) -> str:
    words = re.findall(r"\w+", text)[:_NAME_WORDS]
    return f"{'-'.join(words)[:_NAME_CHARACTERS]}-{ids.content_hash(text.encode())[:8]}.md".lstrip("-")


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:_NAME_CHARACTERS] or "agent"


def _unused(name: str, names: set[str]) -> str:
    number, found = 1, name
    while found in names:
        number += 1
        found = f"{name}-{number}"
    names.add(found)
    return found
