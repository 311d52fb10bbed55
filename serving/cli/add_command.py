"""The command `add`: index one file, web page or text."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from parquetry import ids
from parquetry.errors import SettingsError
from parquetry.printing import tell
from parquetry.serving.cli.options import (
    ConfigOption,
    CorpusOption,
    JsonOption,
    NamespaceOption,
    VerboseOption,
    settings_for,
)
from parquetry.serving.cli.run_commands import run_request
from parquetry.settings.sections import Settings, SourceSettings
from parquetry.sources.local.source import is_local, local_path
from parquetry.sources.registry import Scope
from parquetry.storage.files.durable import make_folder

_STDIN = "-"
_NAME_WORDS, _NAME_CHARACTERS = 6, 60
"""maximum number of words and characters of a text used for its file name"""
_NAME = re.compile(r"[\w][\w .-]{0,120}")


def add(
    target: Annotated[
        str | None, typer.Argument(metavar="FILE|URL|-", help="A file, a URL, or - for text from standard input.")
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="Text to add, as Markdown.")] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="File name of the text; reusing a name replaces the text. Default: its first words."
        ),
    ] = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Add one file, web page or text to the corpus.

    Exit code 1 if it could not be indexed, 4 in an outage.
    """
    from parquetry.flows.pipelines.documents import Request

    if (target is None) == (text is None):
        raise SettingsError("name a file, a URL or - for standard input, or give --text")
    settings = settings_for(config, corpus)
    if target == _STDIN:
        text = _stdin(settings.extraction.max_bytes)
    scopes: tuple[Scope, ...] = ()
    if text is not None:
        file = _kept(settings, text, name)
        target = str(file)
        # All texts belong to one source, the folder where they are stored.
        folder = SourceSettings(name=file.parent.as_uri(), uri=file.parent.as_uri())
        scopes = (Scope(folder, namespace or settings.corpus.namespace, file.name),)
    elif name is not None:
        raise SettingsError("--name is for text; a file or page keeps its own name")
    elif _is_several(settings, str(target)):
        raise SettingsError(f"{target} is no single document; `parquetry refresh {target}` takes all that is in it")
    request = Request(settings, (str(target),), namespace, scopes=scopes)
    run_request(request, direct=True, as_json=as_json, strict=True, verbose=verbose)


def _is_several(settings: Settings, target: str) -> bool:
    folder = is_local(target) and local_path(target).is_dir()
    return folder or any(source.name == target for source in settings.source)


def _stdin(most: int) -> str:
    if sys.stdin.isatty():
        tell("Type or paste the text; Ctrl-D ends it.", err=True)
    content = sys.stdin.buffer.read(most + 1)
    if len(content) > most:
        raise SettingsError(f"standard input is larger than extraction.max_bytes ({most})")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError("standard input is not text in UTF-8; save it as a file and add that") from error


def _kept(settings: Settings, text: str, name: str | None) -> Path:
    """Write a text to a folder beside the corpus, where later runs find it."""
    if not text.strip():
        raise SettingsError("there is no text to add")
    if not is_local(settings.corpus.root):
        raise SettingsError(
            f"a text is kept in a folder beside the corpus, and {settings.corpus.root} is not on this machine; save "
            "the text as a file in one of your sources and refresh that"
        )
    if name is None:
        words = re.findall(r"\w+", text)[:_NAME_WORDS]
        name = f"{'-'.join(words)[:_NAME_CHARACTERS]}-{ids.content_hash(text.encode())[:8]}.md"
    elif not _NAME.fullmatch(name):
        raise SettingsError(f"{name!r} is no plain file name: letters, digits, spaces, dots and dashes")
    elif "." not in name:
        name += ".md"
    root = local_path(settings.corpus.root).resolve()
    from parquetry.storage.files.filesystem import last_folder

    last_folder(str(root))
    folder = root.with_name(f"{root.name}-added")
    try:
        make_folder(folder)
        file = folder / name
        file.write_text(text, "utf-8")
    except OSError as error:
        raise SettingsError(f"the text cannot be kept in {folder}: {error.strerror}") from error
    return file
