"""An application over a small corpus, with tokens of two people, and without writes."""

import pytest

from parquetry.settings.sections import parse_settings
from tests.servers.http_app import running_app
from tests.workshop import Workshop

RIGHTS = ["search", "read", "write"]
PEOPLE = {
    "ada": {"user_id": "ada", "org_id": "acme", "rights": RIGHTS},
    "eve": {"user_id": "eve", "org_id": "other", "rights": RIGHTS},
    "hal": {"user_id": "hal", "org_id": "acme", "rights": ["search"]},
    "hr": {"user_id": "hr", "org_id": "acme", "rights": RIGHTS, "namespaces": ["hr"]},
    "root": {"rights": ["admin"]},
}
TEXTS = {
    "leave.md": "# Leave\n\nEverybody has thirty days of holiday.\n\n## Moving\n\nOne more day for moving house.\n",
    "oak.txt": "The oak table has four legs and costs 640 euros.",
    "sub/power.md": "# Power cuts\n\nAfter a power cut the fan in bay 4 runs backwards.\n",
}


def opened(folder, texts, **serve):
    """Return a running application over texts, and the tokens of people."""
    workshop = Workshop(folder)
    for path, text in texts.items():
        workshop.write(path, text)
    workshop.refresh()
    settings = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": serve, "llm": {"model": "m"}}
    return running_app(parse_settings(settings, "test"))


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("mcp"), TEXTS, wait_seconds=0.01) as running:
        with running.resources.follower.reader(wait=60):
            pass
        running.plain = {name: running.resources.tokens.create(name, **given)[1] for name, given in PEOPLE.items()}
        yield running
