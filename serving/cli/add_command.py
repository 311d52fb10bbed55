"""The command `add`: hand in files, web pages and texts."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from parquetry import ids
from parquetry.errors import DocumentError, SettingsError, SkippedDocument, TransientError
from parquetry.model import Access, Visibility
from parquetry.plural import size_of
from parquetry.printing import tell
from parquetry.serving.cli.option_groups import with_option_groups
from parquetry.serving.cli.options import (
    ConfigOption,
    CorpusOption,
    JsonOption,
    NamespaceOption,
    VerboseOption,
    settings_for,
)
from parquetry.serving.cli.run_commands import run_request
from parquetry.settings.home import check_place
from parquetry.settings.sections import Settings
from parquetry.settings.source import SourceSettings
from parquetry.sources.local.source import is_local, local_path
from parquetry.sources.names import printable
from parquetry.sources.registry import Scope, scopes_of
from parquetry.sources.uploads.importing import fetch_url
from parquetry.sources.uploads.scopes import scope_of_uploads
from parquetry.sources.uploads.store import UploadStore
from parquetry.storage.lake.current import published_sources

_STDIN = "-"
_NAME_WORDS, _NAME_CHARACTERS = 6, 60
"""maximum number of words and characters of a text used for its name"""
_NAME = re.compile(r"[\w][\w .-]{0,120}")
_PAGES = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class UploadOptions:
    """The options that say whose a document is and what it is about."""

    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Label; may be repeated.")] = None
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="KEY=VALUE", help="Metadata: JSON, or else text; may be repeated."),
    ] = None
    visibility: Annotated[
        Visibility | None,
        typer.Option("--visibility", help="Who may see it; default: the user or organization given, else everybody."),
    ] = None
    user: Annotated[str | None, typer.Option("--user", "--user-id", metavar="NAME", help="User that owns it.")] = None
    org: Annotated[str | None, typer.Option("--org", "--org-id", metavar="NAME", help="Organization that owns it.")] = (
        None
    )

    @property
    def given(self) -> bool:
        """True if any is given."""
        return any((self.tag, self.metadata, self.visibility, self.user, self.org))

    def access(self) -> Access:
        """Return the access of the documents.

        Raises:
            SettingsError: the visibility lacks its owner.
        """
        visibility = self.visibility or ("individual" if self.user else "organization" if self.org else "public")
        if visibility == "individual" and not self.user:
            raise SettingsError("--visibility individual needs --user")
        if visibility == "organization" and not self.org:
            raise SettingsError("--visibility organization needs --org")
        return Access(visibility, self.org, self.user, tuple(self.tag or ()))

    def values(self) -> dict[str, Any]:
        """Return the metadata.

        Raises:
            SettingsError: one has no value.
        """
        found: dict[str, Any] = {}
        for each in self.metadata or ():
            key, equals, value = each.partition("=")
            if not equals or not key:
                raise SettingsError(f"--metadata {each!r} has no value; write KEY=VALUE, as author=Ada")
            try:
                found[key] = json.loads(value)
            except (ValueError, RecursionError):
                found[key] = value
        return found


@dataclass(frozen=True, slots=True)
class _New:
    """A document to hand in."""

    name: str
    content: bytes | Path
    content_type: str | None = None
    filename: str = ""
    kind: Literal["upload", "url", "youtube", "text"] = "upload"
    url: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@with_option_groups
def add(
    options: UploadOptions,
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="FILE|URL|-", help="Files, URLs, or - for text from standard input.")
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="Text to add, as Markdown.")] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name; reusing one replaces the document. Default: of the file, or first words."),
    ] = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    namespace: NamespaceOption = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Add files, web pages or a text to the corpus.

    They are kept with the corpus. Exit code 1 if one could not be indexed, 4 in an outage.
    """
    from parquetry.flows.pipelines.documents import Request

    if bool(targets) == (text is not None):
        raise SettingsError("name files, URLs or - for standard input, or give --text")
    settings = settings_for(config, corpus)
    access, metadata = options.access(), options.values()
    space = namespace or settings.corpus.namespace
    named = list(targets or ())
    if name is not None:
        _check_name(name, len(named))
    scopes: list[Scope] = []
    new: list[_New] = []
    failures = 0
    for target, make in _wanted(settings, named, text, name):
        elsewhere = () if target is None else _elsewhere(settings, target, namespace)
        if elsewhere:
            _check_elsewhere(target, elsewhere, name, options)
            scopes.extend(elsewhere)
            continue
        try:
            new.append(make())
        except (DocumentError, TransientError) as error:
            failures += 1
            tell(f"parquetry: {target} is not added: {error}", err=True)
    scopes.extend(_kept_before(settings, space, new) if not options.given else ())
    scopes.extend(_handed_in(settings, space, new, access, metadata))
    if scopes:
        request = Request(settings, tuple(named), namespace, scopes=tuple(scopes))
        run_request(request, direct=True, as_json=as_json, strict=True, verbose=verbose)
    if failures:
        raise typer.Exit(1)


def _wanted(
    settings: Settings, targets: Sequence[str], text: str | None, name: str | None
) -> Iterator[tuple[str | None, Callable[[], _New]]]:
    """Yield every target, or None for a text, with the function that reads it.

    Raises:
        SettingsError: a target is a folder or a source, or there is nothing to add.
    """
    if text is not None:
        yield None, lambda: _text(str(text), name)
    for target in targets:
        if target == _STDIN:
            read = _stdin(settings.extraction.max_bytes)
            yield None, lambda read=read: _text(read, name)  # type: ignore[misc]
        elif _is_several(settings, target):
            raise SettingsError(f"{target} is no single document; `parquetry refresh {target}` takes all that is in it")
        else:
            yield target, lambda target=target: _document(settings, target, name)  # type: ignore[misc]


def _is_several(settings: Settings, target: str) -> bool:
    folder = is_local(target) and local_path(target).is_dir()
    return folder or any(source.name == target for source in settings.source)


def _elsewhere(settings: Settings, target: str, namespace: str | None) -> tuple[Scope, ...]:
    """Return the scopes of a document that a source holds already; none for one that is to be handed in.

    Raises:
        SettingsError: there is no such file.
    """
    check_place(target)
    published = published_sources(settings.corpus.root)
    known = [(each.namespace, each.name) for each in published]
    scopes = scopes_of(settings, (target,), namespace, published=lambda: published)
    held = tuple(
        scope for scope in scopes if scope.settings in settings.source or (scope.namespace, scope.name) in known
    )
    if not held and not is_local(target) and not target.startswith(_PAGES):
        # An object of a store is a source of its own.
        return scopes
    return held


def _check_elsewhere(target: str | None, scopes: Sequence[Scope], name: str | None, options: UploadOptions) -> None:
    if name is not None or options.given:
        raise SettingsError(
            f"{target} belongs to source {scopes[0].name}, which gives it its name, audience and tags; leave these "
            "options out, or change the source"
        )


def _document(settings: Settings, target: str, name: str | None) -> _New:
    """Read a file or a page.

    Raises:
        DocumentError: it is too large, or cannot be fetched.
        TransientError: it cannot be fetched at the moment.
        SettingsError: it is no file, or may not be read.
    """
    if target.startswith(_PAGES):
        page = fetch_url(target, settings)
        return _New(
            name or page.url, page.content, page.content_type, page.filename, page.kind, page.url,
            dict(page.metadata),
        )  # fmt: skip
    file = local_path(target)
    try:
        if not file.is_file():
            raise SettingsError(f"{printable(target)} is not a file")
        size, most = file.stat().st_size, settings.extraction.max_bytes
        if size > most:
            raise SkippedDocument("too-large", f"has {size_of(size)}, more than extraction.max_bytes ({most})")
        with file.open("rb"):
            pass
    except OSError as error:
        raise SettingsError(f"{printable(target)} cannot be read: {error.strerror}") from error
    return _New(name or printable(file.name), file, filename=printable(file.name))


def _text(text: str, name: str | None) -> _New:
    """Return a text as a document.

    Raises:
        SettingsError: it is empty.
    """
    if not text.strip():
        raise SettingsError("there is no text to add")
    content = text.encode("utf-8", "surrogateescape")
    if name is None:
        words = re.findall(r"\w+", text)[:_NAME_WORDS]
        name = f"{'-'.join(words)[:_NAME_CHARACTERS]}-{ids.content_hash(content)[:8]}.md"
    elif "." not in name:
        name += ".md"
    return _New(name, content, "text/markdown", name, "text")


def _check_name(name: str, targets: int) -> None:
    if targets > 1:
        raise SettingsError("--name is for one document; add them one by one")
    if not _NAME.fullmatch(name):
        raise SettingsError(f"{name!r} is no plain file name: letters, digits, spaces, dots and dashes")


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


def _kept_before(settings: Settings, namespace: str, new: list[_New]) -> Iterator[Scope]:
    """Replace texts that an earlier version of this program kept in a folder beside the corpus, and take them out."""
    if not is_local(settings.corpus.root):
        return
    root = local_path(settings.corpus.root).resolve()
    folder = root.with_name(f"{root.name}-added")
    for each in [each for each in new if each.kind == "text" and (folder / each.name).is_file()]:
        (folder / each.name).write_bytes(each.content if isinstance(each.content, bytes) else b"")
        new.remove(each)
        yield Scope(SourceSettings(name=folder.as_uri(), uri=folder.as_uri()), namespace, each.name)


def _handed_in(
    settings: Settings, namespace: str, new: Sequence[_New], access: Access, metadata: dict[str, Any]
) -> Iterator[Scope]:
    """Keep documents; yield the scope of a refresh that publishes them.

    Raises:
        SettingsError: two of them have one name, or one is refused.
    """
    names = [each.name for each in new]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SettingsError(f"two of these are named {printable(twice[0])}; add them one by one, with --name")
    if not new:
        return
    from parquetry.storage.files.filesystem import last_folder

    if is_local(settings.corpus.root):
        last_folder(str(local_path(settings.corpus.root).resolve()))
    store = UploadStore(settings)
    paths = []
    for each in new:
        try:
            upload, _ = store.put(
                namespace,
                each.name,
                each.content,
                filename=each.filename,
                content_type=each.content_type,
                metadata={**each.metadata, **metadata},
                access=access,
                uploaded_by=access.user_id,
                kind=each.kind,
                url=each.url,
            )
        except DocumentError as error:
            raise SettingsError(f"{printable(each.name)} is not kept: {error.detail}") from error
        paths.append(upload.path)
    yield scope_of_uploads(settings, namespace, *paths)
