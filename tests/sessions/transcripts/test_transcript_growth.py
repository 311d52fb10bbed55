"""Chat files built to exhaust their readers take time that grows with their size, and little memory."""

import resource

import psutil
import pytest

from parquetry.errors import DocumentError
from parquetry.model import RawDocument
from parquetry.sessions.transcripts.base import Unread
from parquetry.sessions.transcripts.registry import read_transcripts
from parquetry.sessions.transcripts.values import MOST_PROBLEMS
from tests.processor_time import seconds_of
from tests.sessions.transcripts.hostile_transcripts import CLASSES

pytestmark = pytest.mark.slow

SIZE = 100_000
"""bytes; ten times as many take ten times as long if reading is linear, a hundred times if it is quadratic"""
BETWEEN = 25
SHORT = 0.2
"""seconds of processor time below which a ratio proves nothing; quadratic reading took half a minute"""
ENDLESS = 20
ROOM = 1024**3
"""bytes of memory beyond the tests' own; a reader that multiplies its input fails here and spares the machine"""


def read(build, size):
    """Read a file of a class; return nothing if it is refused."""
    found = []
    content, name = build(size)
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + ROOM, before[1]))
    try:
        found.extend(read_transcripts(RawDocument(content, name)))
    except DocumentError:
        pass
    except MemoryError:
        found = None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert found is not None, "it takes more memory than it may"
    return found


@pytest.mark.parametrize("name", CLASSES)
def test_time_to_read_a_chat_grows_with_its_size(name):
    few = seconds_of(lambda: read(CLASSES[name], SIZE), ENDLESS)
    most = min(ENDLESS, BETWEEN * max(few, SHORT))
    assert seconds_of(lambda: read(CLASSES[name], 10 * SIZE), most) < most


@pytest.mark.parametrize("name", CLASSES)
def test_what_is_read_of_a_chat_is_no_longer_than_it_is(name):
    found = read(CLASSES[name], SIZE)
    unread = [one for one in found if isinstance(one, Unread)]
    messages = [message for one in found if not isinstance(one, Unread) for message in one.messages]
    assert sum(len(message.text) for message in messages) <= 2 * SIZE
    assert sum(len(message.tool or "") + len(message.id) for message in messages) <= 20 * SIZE
    assert len(unread) <= MOST_PROBLEMS + 1
    assert all(len(one.place) + len(one.detail) <= 1000 for one in unread)
