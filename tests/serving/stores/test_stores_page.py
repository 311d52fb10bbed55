"""The example of the page on vector stores runs as it stands."""

import pytest

from tests.documentation import blocks_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("vector-stores")]


def test_example_of_the_page_runs(ada, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_BASE_URL", str(ada.base_url))
    monkeypatch.setenv("OPENAI_API_KEY", ada.api_key)
    (example,) = [block.code for block in blocks_of("docs/openai-stores.md") if block.language == "python"]
    exec(compile(example, "docs/openai-stores.md", "exec"), {})
    assert capsys.readouterr().out.startswith("oak.md 0.")
