"""Names of pages."""

import pytest

from parquetry.net.client import readable_url
from parquetry.sources.web.names import path_of

NAMES = {
    "https://Example.ORG": "example.org/index.html",
    "http://example.org:80/": "example.org/index.html",
    "https://example.org:8443/a": "example.org:8443/a",
    "https://example.org/guide/": "example.org/guide/index.html",
    "https://example.org/guide": "example.org/guide",
    "https://example.org/a/../b/./c": "example.org/b/c",
    "https://example.org/a#part": "example.org/a",
    "https://example.org/Z%C3%BCrich": "example.org/Zürich",
    "https://example.org/Zürich": "example.org/Zürich",
    "https://example.org/My%20File.pdf": "example.org/My File.pdf",
    "https://example.org/My File.pdf": "example.org/My File.pdf",
    "https://example.org/%E4%B8%AD%E6%96%87.html": "example.org/中文.html",
    "https://example.org/caf%E9": "example.org/caf%E9",
    "https://example.org/a%2Fb": "example.org/a%2Fb",
    "https://example.org/a%3Fb": "example.org/a%3Fb",
    "https://example.org/%2e%2e/x": "example.org/%2e%2e/x",
    "https://example.org/a%00b%0Ac": "example.org/a%00b%0Ac",
    "https://example.org/%E2%80%AEtxt.exe": "example.org/%E2%80%AEtxt.exe",
    "https://example.org/news.php": "example.org/news.php.html",
    "https://example.org/news.PHP": "example.org/news.PHP.html",
    "https://example.org/news.php?id=5": "example.org/news.php?id=5",
    "https://example.org/?p=1&q=%C3%A9": "example.org/index.html?p=1&q=é",
    "https://example.org/view?path=a/b.py": "example.org/view?path=a%2Fb.py",
    "https://example.org/script.py": "example.org/script.py",
    "https://xn--bcher-kva.example/": "bücher.example/index.html",
    "https://bücher.example/": "bücher.example/index.html",
    "http://[2606:4700::1111]/a": "[2606:4700::1111]/a",
    "https://example.org//a//b": "example.org//a//b",
}


@pytest.mark.parametrize(("url", "name"), NAMES.items(), ids=NAMES)
def test_page_is_called_after_its_host_path_and_query(url, name):
    assert path_of(readable_url(url)) == name


def test_different_pages_have_different_names():
    spellings = [
        "https://example.org/a", "https://example.org/a/", "https://example.org/A", "https://example.org/a?x",
        "https://example.org/a%3Fx", "https://example.org/a%2520", "https://example.org/a%20", "https://example.org/a%2F",
        "https://example.org:8080/a", "https://www.example.org/a", "https://example.org/a?x=1", "https://example.org/a?x=2",
    ]  # fmt: skip
    assert len({path_of(readable_url(url)) for url in spellings}) == len(spellings)
