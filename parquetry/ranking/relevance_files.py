"""Files of calibrations: those that come with the package, and one of the operator's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from parquetry.errors import SettingsError
from parquetry.ranking.relevance import KINDS, ROLES, Calibration, Curve, Role

FORMAT = 1
Calibrations = Mapping[tuple[Role, str], Calibration]
"""by role and id of the model"""
_PACKAGE = "parquetry.ranking.calibrations"
_BUNDLED = "wordllama.json"


@cache
def bundled() -> Calibrations:
    """Return the calibrations that come with the package."""
    text = (resources.files(_PACKAGE) / _BUNDLED).read_text("utf-8")
    return parse_calibrations(text, _BUNDLED)


@cache
def general_questions() -> Mapping[str, str]:
    """Return id -> text of questions of many kinds, which few collections answer."""
    lines = (resources.files(_PACKAGE) / "questions.txt").read_text("utf-8").splitlines()
    return {f"general/{number}": line for number, line in enumerate(lines)}


def bundled_words() -> Curve:
    """Return the curve over words alone, which are the same with every embedder."""
    return next(iter(bundled().values())).curves["text"]


def calibrations_of(file: str | None) -> Calibrations:
    """Return the calibrations that hold under some settings.

    Args:
        file: file of the operator's own, whose calibrations win; None if there is none.

    Raises:
        SettingsError: the file cannot be read, or is not one.
    """
    if file is None:
        return bundled()
    path = Path(file)
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise SettingsError(
            f"search.calibration names {file}, which cannot be read ({error.strerror}); "
            "write it with `parquetry calibrate`, or remove the setting"
        ) from error
    return {**bundled(), **_read(path, changed)}


@lru_cache(maxsize=8)
def _read(path: Path, _changed: int) -> Calibrations:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"search.calibration names {path}, which cannot be read: {error}") from error
    return parse_calibrations(text, str(path))


def parse_calibrations(text: str, name: str) -> dict[tuple[Role, str], Calibration]:
    """Return the calibrations in a file's text.

    Raises:
        SettingsError: it is not a file of calibrations.
    """
    try:
        found = [_calibration(each) for each in _calibrations(json.loads(text))]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(f"{name} holds no calibrations ({error!r}); write it with `parquetry calibrate`") from error
    return {(each.role, each.model): each for each in found}


def _calibrations(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    if told["format"] != FORMAT:
        raise ValueError(f"its format is {told['format']!r}, not {FORMAT}")
    return list(told["calibrations"])


def _role(told: Mapping[str, Any]) -> Role:
    return "reranker" if "reranker" in told else "embedder"


def _calibration(told: Mapping[str, Any]) -> Calibration:
    role = _role(told)
    return Calibration(role, str(told[role]), {kind: _curve(told["curves"][kind], kind) for kind in ROLES[role]})


def _curve(told: Mapping[str, Any], kind: str) -> Curve:
    weights: dict[str, float] = {}
    for name, value in told["weights"].items():
        if name not in KINDS[kind]:
            raise ValueError(f"{kind} has no signal {name!r}")
        if not 0 <= float(value) < float("inf"):
            raise ValueError(f"the weight of {name} is {value!r}")
        weights[name] = float(value)
    return Curve(float(told["intercept"]), weights)


def with_calibration(text: str | None, calibration: Calibration, measured: Mapping[str, Any], name: str) -> str:
    """Return the text of a file with a calibration added, or replaced.

    Args:
        text: text of the file so far; None if there is none.
        calibration: calibration of one model.
        measured: data that it was measured on, and its error.
        name: name of the file, for messages.

    Raises:
        SettingsError: the text is not that of such a file.
    """
    role, model = calibration.role, calibration.model
    told: list[dict[str, Any]] = []
    if text is not None:
        parse_calibrations(text, name)
        told = [each for each in json.loads(text)["calibrations"] if (_role(each), each[_role(each)]) != (role, model)]
    curves = {
        kind: {"intercept": curve.intercept, "weights": dict(curve.weights)}
        for kind, curve in calibration.curves.items()
    }
    told.append({role: model, "curves": curves, "measured": dict(measured)})
    told.sort(key=lambda each: (_role(each), str(each[_role(each)])))
    return json.dumps({"format": FORMAT, "calibrations": told}, indent=2, ensure_ascii=False) + "\n"
