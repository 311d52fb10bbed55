"""Reads files of chat sessions for the tests and returns short summaries."""

import json

from parquetry.model import RawDocument
from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.registry import read_transcripts


def read(content):
    """Read a whole file: text, bytes, a JSON value, or a list of JSON Lines."""
    if isinstance(content, Lines):
        content = "\n".join(json.dumps(line) for line in content.values)
    elif isinstance(content, dict | list):
        content = json.dumps(content)
    return list(read_transcripts(RawDocument(content.encode() if isinstance(content, str) else content, "x")))


class Lines:
    """Values of a file with one on each line."""

    def __init__(self, *values):
        self.values = values


def sessions(content):
    return [one for one in read(content) if isinstance(one, Transcript)]


def only(content):
    """Return the only session of a file that is read without loss."""
    found = read(content)
    assert [type(one) for one in found] == [Transcript], found
    return found[0]


def told(content):
    """Return role, kind, tool and text of every message of the only session."""
    return [
        (one.role, one.text) if one.kind == "speech" else (one.role, one.kind, one.tool, one.text)
        for one in only(content).messages
    ]
