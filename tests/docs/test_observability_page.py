"""The page on observability: its YAML is valid, and its metrics are those that are written."""

import re
from pathlib import Path

import yaml

from parquetry.telemetry import textfile

PAGE = (Path(__file__).parents[2] / "docs" / "observability.md").read_text()


def test_examples_are_yaml_about_metrics_that_exist():
    rules, collector = (yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
    written = {kind.sample for kind in textfile._KINDS}
    for rule in rules["groups"][0]["rules"]:
        assert set(re.findall(r"\bparquetry_\w+", rule["expr"])) <= written, rule
    assert set(collector["service"]["pipelines"]) == {"traces", "metrics"}


def test_every_metric_is_on_the_page():
    assert {kind.sample for kind in textfile._KINDS} <= set(re.findall(r"`(parquetry_\w+)`", PAGE))
