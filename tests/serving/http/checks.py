"""Checks of answers."""


def ok(response, status=200):
    """Return the JSON of an answer with this status."""
    assert response.status_code == status, response.text
    return response.json()


def problem(response, status, reason):
    """Return the members of a problem with this status and reason."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    told = response.json()
    assert {"title", "detail", "reason"} <= told.keys()
    assert told["reason"] == reason, told
    return told
