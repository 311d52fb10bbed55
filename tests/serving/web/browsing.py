"""A visitor with a browser that runs no scripts: cookies, forms and links, over the application on a real socket."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, ClassVar

import httpx


@dataclass
class Form:
    """A form of a page, with the values that it was loaded with."""

    action: str
    method: str
    values: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    """A page as it was answered: its text, links and forms."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__()
        self.response, self.html = response, response.text
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.forms: list[Form] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._texts: list[str] = []
        self.feed(self.html)

    @property
    def status(self) -> int:
        return self.response.status_code

    @property
    def text(self) -> str:
        """The words of the page, with single blanks."""
        return " ".join(" ".join(self._texts).split())

    def form(self, action: str) -> Form:
        (found,) = [each for each in self.forms if each.action == action]
        return found

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.tags.append((tag, given))
        if tag == "a":
            self.links.append(given["href"] or "")
        if tag in ("script", "img", "link"):
            self.loaded.append(given.get("src") or given.get("href") or "")
        if tag == "form":
            here = self.response.request.url.path
            self.forms.append(Form(given.get("action") or here, given.get("method") or "get"))
        unchecked = given.get("type") in ("checkbox", "radio") and "checked" not in given
        if tag == "input" and self.forms and given.get("name") and not unchecked:
            self.forms[-1].values.setdefault(given["name"] or "", given.get("value") or "")

    def handle_data(self, data: str) -> None:
        self._texts.append(data)


class Visitor:
    """A browser without scripts.

    Args:
        url: address of the service.
        headers: headers of every request.
    """

    opened: ClassVar[list[httpx.Client]] = []
    """connections to be closed when the test is over"""

    def __init__(self, url: str, **headers: str) -> None:
        self.client = httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False, follow_redirects=True)
        self.opened.append(self.client)
        self._origin = {"Origin": url, "Sec-Fetch-Site": "same-origin"}

    def open(self, path: str, **values: Any) -> Page:
        return Page(self.client.get(path, params=values or None))

    def send(self, form: Form, *, files: Any = None, headers: dict[str, str] | None = None, **values: str) -> Page:
        """Send a form with some of its fields filled in."""
        data = {**form.values, **values}
        return Page(self.client.post(form.action, data=data, files=files, headers=headers or self._origin))

    def sign_in(self, token: str) -> Page:
        return self.send(self.open("/sign-in").form("/sign-in"), token=token)


def marks(html: str) -> list[str]:
    """Return the marked words of a page."""
    return re.findall(r"<mark>(.*?)</mark>", html)
