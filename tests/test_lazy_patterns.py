"""Patterns that are compiled when they are used first."""

import re

import pytest

from parquetry.lazy_patterns import lazy_pattern


def test_lazy_pattern_is_compiled_when_used_first_and_then_is_a_pattern(monkeypatch):
    compiled = []
    compile_ = re.compile
    monkeypatch.setattr(re, "compile", lambda source: compiled.append(source) or compile_(source))
    pattern = lazy_pattern("[a-c]+")
    assert not compiled
    assert pattern.findall("abxc") == ["ab", "c"]
    assert pattern.sub("-", "xaby") == "x-y"
    assert pattern.pattern == "[a-c]+"
    assert compiled == ["[a-c]+"]
    with pytest.raises(AttributeError, match="nothing"):
        _ = pattern.nothing
