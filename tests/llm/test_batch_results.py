"""Lines of a batch's files, which a service writes as it likes."""

import io
import json

import pytest

from parquetry.llm.batch_api import result_lines


def line_of(**outcome):
    return json.dumps({"custom_id": "a", **outcome}).encode() + b"\n"


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        ({"response": {"status_code": 200, "body": {"data": []}}}, ""),
        ({"error": {"code": "batch_expired", "message": "too late"}}, "batch_expired"),
        ({"error": {"message": "no code"}}, "failed"),
        ({"response": {"status_code": 429, "body": {}}}, "429"),
        ({"response": "none"}, "failed"),
        ({}, "failed"),
        ({"error": {"code": "x" * 10_000}}, "x" * 100),
        ({"error": {"code": "of https://oak:sesame@service.example/v1"}}, "of https://oak:***@service.example/v1"),
    ],
)
def test_code_of_a_failed_request_is_short_and_holds_no_secret(outcome, code):
    (line,) = result_lines(io.BytesIO(line_of(**outcome)))
    assert (line.custom_id, line.code) == ("a", code)


def test_lines_that_are_none_are_left_out():
    file = io.BytesIO(b'{"custom_id": 3}\n[]\nnull\n{"half\n\xff\n' + b"[" * 100_000 + b"\n" + line_of(error={}))
    assert [line.custom_id for line in result_lines(file)] == ["a"]
