"""Failures of the model service in plain words, with what to do. Pure."""

from __future__ import annotations

_WORDS = {
    "no-upstream": ("No language model is set.", "Name one in the settings, as this page says."),
    "upstream-unreachable": (
        "The model service cannot be reached.",
        "Check that it runs, and that base_url in [upstream] is its address.",
    ),
    "upstream-timeout": (
        "The model service has stopped answering.",
        "Try again. Models that take long to load need a larger silence_seconds in [upstream].",
    ),
    "upstream-refused": (
        "The model service refuses the key of this service.",
        "The operator sets a valid one in the environment variable PARQUETRY_UPSTREAM_API_KEY.",
    ),
    "upstream-cut": ("The model service broke off its answer.", "Ask again."),
    "upstream-redirected": (
        "The model service has another address.",
        "The operator sets base_url in [upstream] to where it leads.",
    ),
    "upstream-broken": (
        "The model service answers in a form that this page does not understand.",
        "Check that base_url in [upstream] ends where its OpenAI-compatible API begins, often with /v1.",
    ),
}
_BY_STATUS = {
    404: ("The model service does not know this model.", "Choose another, or download it there first."),
    429: ("The model service takes no further questions at the moment.", "Wait a little, and ask again."),
    413: ("The question with its passages is too long for this model.", "Begin a new chat, or ask for less."),
}
_TOO_LONG = ("context length", "context_length", "maximum context", "too many tokens", "context size")


def plain_words(reason: str, status: int, detail: str) -> str:
    """Return what went wrong, and what to do.

    Args:
        reason: code of the failure.
        status: its HTTP status.
        detail: words of the model service or of this one.
    """
    if reason in _WORDS:
        return " ".join(_WORDS[reason])
    if reason != "upstream-failed":
        return detail
    if any(words in detail.lower() for words in _TOO_LONG):
        what = _BY_STATUS[413]
    elif status in _BY_STATUS:
        what = _BY_STATUS[status]
    elif status >= 500:
        what = ("The model service has failed.", "Ask again; if it goes on, its own log says why.")
    else:
        what = ("The model service refuses the question.", "Its words say why.")
    return f"{' '.join(what)} It says: {detail}"
