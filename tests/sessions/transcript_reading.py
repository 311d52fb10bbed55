"""Reads files of chat sessions for the tests, and says in short what came out."""

import json

from parquetry.model import RawDocument
from parquetry.sessions.model import Transcript
from parquetry.sessions.transcripts.registry import read_transcripts


def read(content):
    """All that is read of a file: text, bytes, a JSON value, or a list of lines of JSON Lines."""
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
    """The only session of a file of which nothing is lost."""
    found = read(content)
    assert [type(one) for one in found] == [Transcript], found
    return found[0]


def told(content):
    """Of the only session: role, kind, tool and text of every message."""
    return [
        (one.role, one.text) if one.kind == "speech" else (one.role, one.kind, one.tool, one.text)
        for one in only(content).messages
    ]
