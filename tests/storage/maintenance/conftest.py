"""Corpora that a test damages, and commands run on them."""

from __future__ import annotations

import json
import logging
import shutil
from itertools import count
from pathlib import Path

import pytest

from parquetry.serving.cli.main import run
from tests.storage.damaged_shelf import make


class Asked:
    """Exit code and output of a command."""

    def __init__(self, code, out, err):
        self.code, self.out = code, out
        self.lines = err.splitlines()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made") / "corpus"
    make(root)
    assert run(["search", "oak", "--mode", "text", "--corpus", str(root)]) == 0
    return root


@pytest.fixture
def corpora(made, tmp_path):
    """Return an iterator of copies of the corpus, each in its own place."""
    return (Path(shutil.copytree(made, tmp_path / f"{number}")) for number in count())


@pytest.fixture
def corpus(corpora):
    return next(corpora)


@pytest.fixture
def ask(capsys, caplog):
    """Run a command on a corpus; warnings precede the final message."""

    def ask(corpus, *arguments):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "parquetry"):
            code = run([*arguments, "--corpus", str(corpus)])
        said = capsys.readouterr()
        warned = [each.getMessage() for each in caplog.records if each.name == "parquetry"]
        return Asked(code, said.out, "\n".join([*warned, said.err.strip()]).strip())

    return ask


@pytest.fixture
def found(ask):
    """Search a corpus; return the answer without the seconds."""

    def found(corpus, *options):
        asked = ask(corpus, "search", "the oak", "--mode", "text", "--type", "both", "--json", *options)
        if asked.code == 0:
            told = json.loads(asked.out)
            del told["seconds"]
            asked.out = told
        return asked

    return found


@pytest.fixture
def right(made, found):
    answer = found(made).out
    assert len(answer["results"]) == 4
    return answer
