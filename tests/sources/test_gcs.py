"""Responses of Google Cloud Storage that its emulator never gives: refusals, failures and endless listings."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from parquetry.errors import SettingsError, TransientError
from tests.sources.shelf import opened


class Answering(ThreadingHTTPServer):
    """Give one response to every request, and count the requests."""

    daemon_threads = True
    status = 200
    body: Any = None
    asked = 0


class _Handler(BaseHTTPRequestHandler):
    server: Answering

    def do_GET(self) -> None:
        self.server.asked += 1
        raw = json.dumps(self.server.body).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def google(monkeypatch) -> Iterator[Answering]:
    server = Answering(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def scan() -> list[Any]:
    return list(opened("gs://bucket/shelf", token="anon").scan(""))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "Anonymous caller does not have storage.objects.list access to the Google Cloud Storage bucket."),
        (403, "ada does not have storage.objects.list access to the Google Cloud Storage bucket."),
    ],
)
def test_refusal_says_to_check_the_credentials(google, status, message):
    google.status, google.body = status, {"error": {"code": status, "message": message}}
    with pytest.raises(SettingsError, match=r"no permission to list gs://bucket/shelf .*; check the credentials"):
        scan()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_failure_breaks_the_listing_off_and_is_not_tried_again_here(google, status, caplog):
    google.status, google.body = status, {"error": {"code": status, "message": "Backend Error"}}
    with pytest.raises(TransientError, match="listing gs://bucket/shelf broke off"):
        scan()
    assert google.asked == 1


def test_listing_that_sends_the_same_page_for_ever_breaks_off(google):
    google.body = {"nextPageToken": "again"}
    with pytest.raises(TransientError, match="the same page"):
        scan()


def test_bucket_that_does_not_exist_is_a_settings_error(google):
    google.status, google.body = 404, {"error": {"code": 404, "message": "The specified bucket does not exist."}}
    with pytest.raises(SettingsError, match="does not exist"):
        scan()
