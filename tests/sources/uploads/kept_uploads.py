"""Uploads in the tests: a store of a temporary folder."""

from __future__ import annotations

from parquetry.settings.sections import parse_settings


def settings_of(tmp_path):
    return parse_settings({"corpus": {"root": str(tmp_path / "corpus")}}, "test")


def files(tmp_path):
    root = tmp_path / "corpus" / "uploads"
    return sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())


def put(store, name="a.md", content=b"text", namespace="default", **told):
    return store.put(namespace, name, content, filename="", **told)
