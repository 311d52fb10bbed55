"""Files that pages load: htmx is the published one, and all of them are in the repository."""

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from parquetry.serving.web.assets import FOLDER, HTMX_SHA256, assets
from parquetry.serving.web.rendering import ago, render
from tests.documentation import ROOT

NODE = ROOT / ".node" / "node_modules" / "htmx.org"


def test_htmx_is_the_file_that_was_reviewed():
    (name,) = [name for name in assets() if name.startswith("htmx")]
    assert hashlib.sha256(assets()[name].content).hexdigest() == HTMX_SHA256
    assert name == "htmx-2.0.11.min.js"
    assert b"Zero-Clause BSD" in (FOLDER / "htmx-LICENSE.txt").read_bytes()


@pytest.mark.slow
def test_htmx_is_the_file_of_the_npm_package():
    """`npm ci` compared the package with the checksum of the lock file."""
    package = json.loads((NODE / "package.json").read_text("utf-8"))
    assert (package["version"], package["license"]) == ("2.0.11", "0BSD")
    published = (NODE / "dist" / "htmx.min.js").read_bytes()
    assert published == assets()["htmx-2.0.11.min.js"].content


def test_no_file_names_another_host_to_load_from():
    for path in FOLDER.glob("dashboard.*"):
        assert not re.findall(r"(?:https?:)?//[\w.]+\.\w+|@import|url\(", path.read_text("utf-8")), path


def test_every_template_is_used():
    templates = {path.name for path in (FOLDER.parent / "templates").iterdir()}
    code = [path.read_text("utf-8") for path in (ROOT / "serving").rglob("*.py")]
    code += [path.read_text("utf-8") for path in (FOLDER.parent / "templates").iterdir()]
    assert [name for name in templates if not any(f'"{name}"' in each for each in code)] == []


def test_times_are_told_in_words():
    now = datetime(2031, 3, 1, 12, tzinfo=UTC)
    told = [ago(now - timedelta(seconds=each), now) for each in (3, 60, 7300, 90_000, 40 * 86_400)]
    assert told == ["just now", "1 minute ago", "2 hours ago", "1 day ago", "2031-01-20"]


def test_value_that_a_template_lacks_is_an_error():
    with pytest.raises(Exception, match="is undefined"):
        render("error.html")
    assert Path(FOLDER).is_dir()
