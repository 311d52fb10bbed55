"""Take the pictures of the dashboard again: `make screenshots`, of the example handbook, into `docs/dashboard/`.

Names of views on the command line take those alone.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.servers import session_model  # noqa: E402 - of the checkout, which no package has
from tests.servers.chat_server import ChatServer  # noqa: E402
from tests.servers.model_service import AskedRequest, ModelAnswer, ModelService, text_stream, whole  # noqa: E402

FOLDER = ROOT / "docs" / "dashboard"
QUESTION = "/search?q=Why+does+the+fan+in+bay+4+run+backwards%3F"
SIZES = ((1280, 900), (390, 844))
"""pixels: a desk, and a phone"""
_SETTINGS = """[corpus]
root = "corpus"
[llm]
model = "scripted"
base_url = "{model}"
[upstream]
base_url = "{upstream}"
[[source]]
name = "handbook"
uri = "handbook"
[[source]]
name = "chats"
uri = "chats"
content = "sessions"
visibility = "public"
"""
_SAID = {
    "monday.json": "public/fact: Staging: the database is reset every Monday at 06:00 UTC.",
    "tuesday.json": "public/lesson: Fan in bay 4: swap two phases when it runs backwards after maintenance.",
    "friday.json": "public/fact: Staging: the database is not reset any more.",
}
"""file of a chat -> what its user says, as the scripted model reads it"""
_LATER = "public/lesson: Fan in bay 4: mark the terminal block after maintenance."
"""a statement that would be merged with one of those"""
_ANSWER = "Two phases are **swapped** [1]. After maintenance:\n\n1. Switch the fan off.\n2. Swap two phases [2]."
_PROGRAM = [sys.executable, "-m", "parquetry.serving.cli.main"]


def views(client: httpx.Client) -> dict[str, str]:
    """Return name and path of every view."""
    return {
        "overview": "/",
        "search": QUESTION,
        "explanation": f"{QUESTION}&explain=1",
        "comparison": f"{QUESTION.replace('?', '/compare?')}&mode=hybrid&mode2=text",
        "ask": "/ask",
        "documents": "/documents?sort=name",
        "document": f"{_document(client, 'employee-handbook.pdf')}?chunk=1",
        "history": f"{_document(client, 'parental-leave.md')}/history",
        "add": "/add",
        "map": "/map",
        "quality": "/quality?list=little-text",
        "tokens": "/admin",
        "audit": "/admin/audit",
        "settings": "/admin/settings",
        **_runs(client),
        "reviews": "/entries/reviews",
        "sign-in": "/sign-in",
    }


def _answered(asked: AskedRequest) -> ModelAnswer:
    return whole({"data": [{"id": "scripted"}]}) if asked.path == "/v1/models" else text_stream(_ANSWER)


def _learn(client: httpx.Client) -> None:
    """Learn from the sessions with a review, until a merge waits for its answer."""
    token = re.search(r'name="form_token" value="(\w+)"', client.get("/entries").text)
    if token is None:
        raise SystemExit("the page of entries has no form")
    sent = {"form_token": token[1], "review": "1"}
    client.post("/entries/learn", data=sent, headers={"Origin": str(client.base_url).rstrip("/")})
    while "/entries/reviews" not in client.get("/runs").text:
        time.sleep(0.1)


def _document(client: httpx.Client, name: str) -> str:
    listed = client.get("/documents", params={"q": name}).text
    document = re.search(r'"(/documents/[0-9a-f-]{36})"', listed)
    if document is None:
        raise SystemExit(f"{name} is not published")
    return document[1]


def _runs(client: httpx.Client) -> dict[str, str]:
    """Return the views of runs, versions and entries."""
    listed = client.get("/runs", params={"kind": "refresh"}).text
    run = re.search(r'"(/runs/history/[^"]+)"', listed)
    entry = re.search(r'"(/entries/[0-9a-f-]{36})"', client.get("/entries", params={"standing": "contradicted"}).text)
    if run is None or entry is None:
        raise SystemExit("no run or entry is published")
    return {
        "runs": "/runs",
        "run": run[1],
        "plan": "/runs/plan",
        "versions": "/runs/versions",
        "version": "/runs/versions/1",
        "restore": "/runs/versions/1/restore",
        "entries": "/entries",
        "entry": entry[1],
    }


def take(browser: Browser, url: str, name: str, path: str) -> None:
    """Take one view on a desk and on a phone, light and dark."""
    schemes: tuple[Any, ...] = ("light", "dark")
    for width, height in SIZES:
        for scheme in schemes:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(url + path)
            if name == "ask":
                page.get_by_label("Question").fill("Why does the fan in bay 4 run backwards?")
                page.keyboard.press("Enter")
                page.get_by_role("button", name="Good answer").wait_for()
                page.evaluate("scrollTo(0, 0)")
            page.wait_for_load_state("networkidle")
            picture = Image.open(io.BytesIO(page.screenshot()))
            picture.save(FOLDER / f"{name}-{width}-{scheme}.webp", quality=60, method=6)
            page.close()


def main() -> None:
    """Publish the handbook and some chats in a temporary folder, serve it, and take its pictures."""
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as place,
        ChatServer(session_model.answer) as model,
        ModelService(rule=_answered) as upstream,
    ):
        folder = Path(place)
        settings = _SETTINGS.format(model=model.url, upstream=upstream.base_url)
        (folder / "parquetry.toml").write_text(settings, "utf-8")
        _publish(folder)
        service = subprocess.Popen(
            [*_PROGRAM, "serve", "--port", "0"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            url = next(found[0] for line in service.stdout or () if (found := re.search(r"http://[\w.]+:\d+", line)))
            with httpx.Client(base_url=url, timeout=60, trust_env=False, follow_redirects=True) as client:
                while client.get("/ready").status_code != 200:
                    time.sleep(0.1)
                _learn(client)
                shown = views(client)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                for name, path in shown.items():
                    if sys.argv[1:] and name not in sys.argv[1:]:
                        continue
                    take(browser, url, name, path)
                browser.close()
        finally:
            service.terminate()
            service.wait(60)


def _publish(folder: Path) -> None:
    """Publish the handbook twice, one document of which changes and one is broken, and what is learned from chats."""
    shutil.copytree(ROOT / "examples" / "handbook", folder / "handbook")
    (folder / "handbook" / "people" / "works-agreement.docx").write_bytes(b"PK\x03\x04 this is no document at all")
    (folder / "chats").mkdir()
    for number, (name, said) in enumerate(_SAID.items()):
        _write_chat(folder / "chats" / name, said, number)
    subprocess.run([*_PROGRAM, "refresh", "--direct"], cwd=folder, check=True)
    subprocess.run([*_PROGRAM, "sessions", "refresh", "--direct"], cwd=folder, check=True)
    changed = folder / "handbook" / "people" / "parental-leave.md"
    lines = changed.read_text("utf-8").splitlines()
    changed.write_text("\n".join([*lines[:-2], "Ask in writing, eight weeks ahead.", lines[-1]]), "utf-8")
    subprocess.run([*_PROGRAM, "refresh", "--direct"], cwd=folder, check=True)
    subprocess.run([*_PROGRAM, "analyze"], cwd=folder, check=True)
    created = [*_PROGRAM, "token", "create", "--user", "ada", "--org", "acme", "--expires", "90d", "--name"]
    for name in ("laptop of Ada", "wiki of acme"):
        subprocess.run([*created, name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    # Learned from with a review, when the service runs.
    _write_chat(folder / "chats" / "monday-after.json", _LATER, len(_SAID))


def _write_chat(file: Path, said: str, day: int) -> None:
    message = {"role": "user", "content": said, "created_at": 1_767_225_600 + 86_400 * day}
    file.write_text(json.dumps({"messages": [message]}), "utf-8")


if __name__ == "__main__":
    main()
