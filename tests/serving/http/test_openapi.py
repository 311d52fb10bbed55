"""Requests made at random from the OpenAPI description: every answer is one that it describes."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.workshop import Workshop

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("openapi")]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
EXPECTED = (501, 503)
"""statuses of 5xx that the description promises: no language model; a video or page that cannot be fetched now"""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    workshop = Workshop(tmp_path_factory.mktemp("openapi"))
    for name in ("oak", "ash", "elm"):
        workshop.write(f"{name}.md", f"# {name}\n\nA table of {name}.")
    workshop.refresh()
    # Writes are kept and queued; nothing carries them out here.
    serve = {"wait_seconds": 0.01, "requests_per_minute": 10_000_000}
    with running_app(
        parse_settings({"corpus": {"root": str(workshop.root / "corpus")}, "serve": serve}, "test")
    ) as app:
        with app.resources.follower.reader(wait=60):
            pass
        yield app


@pytest.fixture(scope="module")
def operations(app):
    description = schemathesis.openapi.from_url(f"{app.url}/openapi.json")
    return [found.ok() for found in description.get_all_operations()]


# Not schemathesis' own parametrize: it writes an attribute of tests that pytest 9.2 does not have.
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(data=strategies.data())
def ask(kinds, data):
    """Send requests of some kinds; every answer is one that is described."""
    case = data.draw(data.draw(strategies.sampled_from(kinds), "kind"), "case")
    response = case.call()
    checks = [check for check in CHECKS if not (check is not_a_server_error and response.status_code in EXPECTED)]
    case.validate_response(response, checks=checks)


def test_every_answer_is_described(operations):
    assert len(operations) >= 40
    openai = [
        each.path for each in operations if each.path.startswith(("/v1/files", "/v1/uploads", "/v1/vector_stores"))
    ]
    assert len(openai) == 25
    for operation in operations:
        ask([operation.as_strategy(mode) for mode in GenerationMode])


def test_examples_are_answered_as_described(operations):
    examples = [each for operation in operations for each in operation.get_strategies_from_examples()]
    assert len(examples) >= 5
    for each in examples:
        ask([each])
