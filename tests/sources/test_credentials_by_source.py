"""Stores with credentials of their own, side by side in one settings file."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from parquetry import connect
from parquetry.errors import SettingsError
from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.flows.pipelines.observer import Observer
from parquetry.planning.report import RunReport
from parquetry.settings.sections import parse_settings
from parquetry.sources.base import Place
from parquetry.sources.providers import open_place
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.azurite import Azurite
from tests.servers.seaweed import Credentials, seaweed
from tests.written_bytes import holding


def refresh(root: Path, *sources: dict[str, Any]) -> RunReport:
    settings = parse_settings(
        {"corpus": {"root": str(root)}, "extraction": {"workers": 1}, "source": list(sources)}, "test"
    )
    assert "SECRET" not in str(settings).upper().replace("SECRET_ACCESS_KEY", "").replace("ENV:OTHER_SECRET", "")
    return run_refresh(Request(settings), DirectEngine(), Observer())


def texts(root: Path) -> dict[str, str]:
    """Return the text of each document by its source."""
    rows = connect(str(root)).sql("SELECT source, text FROM texts JOIN documents USING (document_id)").fetchall()
    return dict(rows)


def test_two_s3_stores_with_keys_of_their_own(s3_server, tmp_path, monkeypatch):
    """One store's keys come from where AWS's tools look, the other's from variables that its source names."""
    other_keys = Credentials("other-owner", "other-5f3a90c1d27b4e6f8a12")
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    with seaweed(other_keys) as other:
        monkeypatch.setenv("OTHER_ID", other_keys.access_key)
        monkeypatch.setenv("OTHER_SECRET", other_keys.secret_key)
        for server, text in ((s3_server, "Oak is planed."), (other, "Elm is sawn.")):
            server.client().create_bucket(Bucket="shelf")
            server.put("shelf", "a.md", text)
        own = {"access_key_id": "env:OTHER_ID", "secret_access_key": "env:OTHER_SECRET"}
        there = {"name": "there", "uri": "s3://shelf", "options": {"endpoint_url": other.endpoint, **own}}
        report = refresh(tmp_path / "kb", {"name": "here", "uri": "s3://shelf"}, there)
        assert (report.documents.added, report.documents.failed) == (2, 0)
        assert texts(tmp_path / "kb") == {"here": "Oak is planed.", "there": "Elm is sawn."}
        monkeypatch.setenv("OTHER_SECRET", "wrong-5f3a90c1d27b4e6f8a12")
        with pytest.raises(SettingsError) as refused:
            refresh(tmp_path / "kb", there)
        assert "wrong-5f3a" not in str(refused.value)
    assert holding(tmp_path, {"other": other_keys.secret_key, "own": s3_server.secret_key}) == []


def test_two_azure_accounts_with_connection_strings_of_their_own(azurite, tmp_path, monkeypatch):
    key = base64.b64encode(b"the key of the other account").decode()
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string())
    with Azurite("acme", key) as other:
        monkeypatch.setenv("ACME_BLOBS", other.connection_string())
        uris = []
        for server, text in ((azurite, "Oak is planed."), (other, "Elm is sawn.")):
            container = server.container()
            server.put(container, "a.md", text.encode())
            uris.append(f"abfs://{container}")
        there = {"name": "there", "uri": uris[1], "options": {"connection_string": "env:ACME_BLOBS"}}
        report = refresh(tmp_path / "kb", {"name": "here", "uri": uris[0]}, there)
    assert (report.documents.added, report.documents.failed) == (2, 0)
    assert texts(tmp_path / "kb") == {"here": "Oak is planed.", "there": "Elm is sawn."}
    assert holding(tmp_path, {"other": key, "own": azurite.key}) == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"access_key_id": "env:NOT_SET", "secret_access_key": "env:KEY"}, "the environment has no variable 'NOT_SET'"),
        ({"access_key_id": "env:", "secret_access_key": "env:KEY"}, "the environment has no variable ''"),
        ({"access_key_id": "a", "secret_access_key": "abc-123-planted"}, "put it into the environment"),
        ({"access_key_id": "env:KEY"}, "belong together"),
        ({"access_key_id": "env:KEY", "secret_access_key": "env:KEY", "profile": "p"}, "give one of"),
        ({"secret_acces_key": "abc-123-planted"}, "unknown setting secret_acces_key"),
    ],
)
def test_credentials_that_are_not_whole_are_refused_without_being_shown(options, problem, monkeypatch):
    monkeypatch.setenv("KEY", "abc-123-planted")
    with pytest.raises(SettingsError) as refused:
        open_place(Place("archive", "s3://shelf", options=options))
    assert problem in str(refused.value)
    assert "planted" not in json.dumps(str(refused.value))
