"""Providers by kind of place. Entry points register further kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from urllib.parse import urlsplit

from parquetry.errors import SettingsError
from parquetry.masking import holds_credentials, masked
from parquetry.sources.archive.source import ArchivedSource
from parquetry.sources.base import Place, Source
from parquetry.sources.registered import ENTRY_POINTS, registered
from parquetry.sources.secret_options import with_environment
from parquetry.sources.selection import SelectedSource, Selection

Provider = Callable[[Place], Source]
BUILT_IN = {
    "file": "parquetry.sources.local.source:open_local",
    "s3": "parquetry.sources.s3.source:open_s3",
    "http": "parquetry.sources.web.source:open_web",
    "https": "parquetry.sources.web.source:open_web",
    "youtube": "parquetry.sources.youtube.source:open_youtube",
    "vercel-blob": "parquetry.sources.vercel_blob:open_vercel_blob",
    "abfs": "parquetry.sources.azure:open_azure",
    "abfss": "parquetry.sources.azure:open_azure",
    "az": "parquetry.sources.azure:open_azure",
    "gs": "parquetry.sources.gcs:open_gcs",
    "gcs": "parquetry.sources.gcs:open_gcs",
}
"""kind of place -> module and function, imported on first use"""
_OTHERS = "parquetry.sources.filesystem:open_filesystem"
"""provider for every other scheme that fsspec supports"""
_YOUTUBE = frozenset({"youtube.com", "www.youtube.com", "m.youtube.com", "music.youtube.com", "youtu.be"})
"""hosts with video pages"""
_IN_ONE_PROCESS = frozenset({"http", "https", "youtube"})
"""kinds that keep what they read while listing, and pace their requests to each host in the memory of one process"""
_SELECTS = frozenset({"file", "http", "https"})
"""kinds with a provider that applies the globs itself"""


def open_place(place: Place) -> Source:
    """Open the source at a place.

    Raises:
        SettingsError: no provider for this kind of place, credentials in its URL, or invalid settings.
    """
    kind = kind_of(place.uri)
    if holds_credentials(place.uri):
        raise SettingsError(
            f"the uri of a source, {masked(place.uri)}, holds credentials, which would be stored and shown; "
            f"{_instead(kind)}"
        )
    options = with_environment(place.name, place.options)
    # On a local disk the table of contents of an archive is read in place; elsewhere the whole archive is fetched.
    archives = options.pop("archives", kind == "file")
    if not isinstance(archives, bool):
        raise SettingsError(f"source {place.name}: options: archives must be true or false (it is {archives!r})")
    source = _provider(kind, place.name)(replace(place, options=options))
    if kind not in _SELECTS:
        source = SelectedSource(source, Selection(place.include, place.exclude))
    return ArchivedSource(source, Selection((), place.exclude)) if archives else source


def is_read_anywhere(uri: str) -> bool:
    """Return True if the documents of a place can be fetched by another process than the one that listed them."""
    return kind_of(uri) not in _IN_ONE_PROCESS


def _instead(kind: str) -> str:
    """Return the advice on where to put the credentials for a kind of place."""
    if kind in ("http", "https", "youtube"):
        return "pages are asked without any"
    if kind == "s3":
        return "give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
    if kind in ("abfs", "abfss", "az"):
        return "give them as AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_SAS_TOKEN in the environment"
    return f"give them as FSSPEC_{kind.upper()}_PASSWORD in the environment"


def kind_of(uri: str) -> str:
    """Return the scheme of a URL; `file` for a path, `youtube` for a YouTube page."""
    if "://" not in uri:
        return "file"
    parts = urlsplit(uri)
    kind = parts.scheme.lower()
    return "youtube" if kind in ("http", "https") and (parts.hostname or "") in _YOUTUBE else kind


def _provider(kind: str, name: str) -> Provider:
    for entry in registered(kind):
        provider: Provider = entry.load()
        return provider
    place = BUILT_IN.get(kind) or (_OTHERS if _is_of_fsspec(kind) else None)
    if place is None:
        built_in = ", ".join(sorted({*BUILT_IN} - {"file"}))
        raise SettingsError(
            f"source {name}: {kind}:// is not supported; use a local folder, {built_in}, a scheme of fsspec, or "
            f"register a provider (entry point {ENTRY_POINTS})"
        )
    module, _, function = place.partition(":")
    found: Provider = getattr(import_module(module), function)
    return found


def _is_of_fsspec(kind: str) -> bool:
    """True if fsspec has a filesystem for a kind of place; imported only for kinds that are not built in."""
    from fsspec.registry import known_implementations

    return kind in known_implementations
