"""New settings files, also from the files of agents: checked before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from parquetry.errors import SettingsError
from parquetry.settings import bounded_toml
from parquetry.settings.agent_files import KnowledgePlan, PlannedSource, plan_sources, read_agent
from parquetry.settings.sections import load_settings, parse_settings
from parquetry.settings.template import template
from parquetry.storage.files.durable import make_folder


def write_settings(file: Path, agents: Sequence[Path], organization: str | None) -> tuple[PlannedSource, ...]:
    """Write a settings file, with the knowledge of agents as sources.

    Args:
        file: file to write; an existing one is checked and kept.
        agents: files of agents; none for a file with an example of a source.
        organization: audience of what the agents share; None for everybody.

    Returns:
        The sources written; none without agents.

    Raises:
        SettingsError: the file exists or cannot be written, or an agent file has a mistake; nothing is written.
    """
    if file.exists():
        raise _exists(file)
    plan = KnowledgePlan((), ())
    if agents:
        plan = plan_sources([read_agent(each) for each in agents], file.absolute().parent, organization or None)
    content = template([source.as_toml() for source in plan.sources])
    parse_settings(bounded_toml.loads(content), str(file))
    try:
        for each in plan.texts:
            make_folder(each.file.parent)
            each.file.write_text(each.text, "utf-8")
        with file.open("x", encoding="utf-8") as stream:
            stream.write(content)
    except FileExistsError as error:
        raise _exists(file) from error
    except OSError as error:
        raise SettingsError(f"{error.filename or file} cannot be written: {error.strerror}") from error
    return plan.sources


def _exists(file: Path) -> SettingsError:
    """Return the refusal to write over a file; raise what is wrong in it, if something is."""
    load_settings(file)
    return SettingsError(f"{file} exists already; edit it, or name another file")
