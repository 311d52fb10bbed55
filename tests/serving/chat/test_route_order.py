"""A chat tries no routes of other parts: each costs time of every request."""

from starlette.routing import Match

from parquetry.serving.http.app import create_app
from parquetry.settings.sections import parse_settings


def tried(app, method, path):
    """Return the number of routes, or groups of them, that are tried until one has a request."""
    scope = {"type": "http", "method": method, "path": path, "headers": [], "root_path": "", "query_string": b""}
    for number, route in enumerate(app.router.routes, 1):
        if route.matches({**scope, "app": app})[0] is Match.FULL:
            return number
    raise AssertionError(f"no route for {path}")


def test_chats_and_responses_are_tried_first_and_what_is_passed_on_last(tmp_path):
    app = create_app(parse_settings({"corpus": {"root": str(tmp_path)}}, "test"))
    own = tried(app, "POST", "/v1/chat/completions")
    assert tried(app, "POST", "/v1/responses") == own + 1
    assert tried(app, "POST", "/v1/completions") == len(app.router.routes)
    # Before it stand the description of the API alone.
    assert own <= 2
