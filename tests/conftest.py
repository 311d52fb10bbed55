"""Fixtures for all packages."""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.fixtures import SubRequest

from parquetry import known_secrets
from parquetry.garbage import collect_seldom
from parquetry.llm import reply_forms
from parquetry.llm.rate_limit import rate_limit_of
from parquetry.process_folder import process_folder
from tests.failure_report import FailureReport
from tests.prefect_homes import fill_home
from tests.processor_report import ProcessorReport
from tests.series import ALL, VARIABLE, choose_day, part_of
from tests.servers.azurite import Azurite
from tests.servers.google_storage import GoogleStorage
from tests.servers.seaweed import S3Server, seaweed
from tests.workshop import Workshop

# Without a server of the fixtures below, Prefect would start one of its own, which nothing ends in order.
NO_SERVER = {"PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false"}
os.environ |= NO_SERVER

# A shell makes its background programs ignore Ctrl-C, and so would every program that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST_IN_A_NAME = 32
"""bytes of a parameter that are part of a test's name"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processor-seconds", action="store_true", help="tell the processor time of each file of tests")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.processor_seconds:
        config.pluginmanager.register(ProcessorReport())
    # Before other test processes begin, which try the same.
    choose_day()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailureReport(config))
        _choose_temporary_folder()


def _choose_temporary_folder() -> None:
    """Give the run a temporary folder of its own, which goes at its end with what killed processes left there.

    That of a run that was killed goes with the next one. Its path is short enough for sockets, unlike the paths of the
    tests' folders, which stay where they always are.
    """
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    os.environ["TMPDIR"] = tempfile.tempdir = str(process_folder())


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name long contents by their parameter: archives hold the time at which they were made.

    Test processes that begin in different seconds would otherwise collect different tests, and the run would end.
    """
    return argname if isinstance(val, bytes) and len(val) > LONGEST_IN_A_NAME else None


@pytest.fixture(autouse=True)
def _announced_by_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test registers as a secret: texts of later tests in this process would be masked, or refused."""
    monkeypatch.setattr(known_secrets, "_announced", known_secrets._announced)


@pytest.fixture
def nothing_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the secrets that fixtures registered in this process."""
    monkeypatch.setattr(known_secrets, "_announced", frozenset())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Fail a test that leaves the process in a folder of its own, which is deleted: all later tests would fail."""
    yield
    _end_servers(item, nextitem)
    if len(sys.modules) > _modules_frozen + MANY_MODULES:
        gc.collect()
        _freeze_modules()
    start = item.config.invocation_params.dir
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        folder = Path("a folder that is gone")
    if folder != start:
        os.chdir(start)
        pytest.fail(f"the test left the process in {folder}")


SERVERS = ("prefect_api", "s3_server", "azurite", "google_storage")
"""fixtures that start a server"""
SERVERS_OF_SHELVES = {"s3": "s3_server", "azure": "azurite", "google": "google_storage"}
"""server fixtures that a fixture `shelf` starts for its store"""
SIGNS = re.compile(rf"mark\.slow|{'|'.join(SERVERS)}|\bshelf_of\b|def test_.*\b(?:records|lines)\b")
"""signs of a slow test in a file: the mark, or a fixture that needs a server"""


_running: list[tuple[pytest.FixtureDef[object], SubRequest]] = []
"""servers that were started for the session"""


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: SubRequest) -> Iterator[object]:
    """Note which servers run."""
    if fixturedef.argname in SERVERS:
        _running.append((fixturedef, request))
    return (yield)


def _end_servers(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End servers after their tests, where these come one after the other: one that idles takes processor time."""
    if item.config.option.markexpr != "slow" or nextitem is None or _group_of(item) == _group_of(nextitem):
        return
    for server, request in list(_running):
        if server.argname not in getattr(nextitem, "fixturenames", ()):
            _running.remove((server, request))
            server.finish(request)


def _group_of(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("xdist_group")
    return None if mark is None else str(mark.args[0])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file without a test of the tier that runs: every test process imports all others."""
    tier = config.option.markexpr
    if tier not in ("slow", "not slow") or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text("utf-8")
    if tier == "slow":
        return None if _may_be_slow(text) else True
    return True if "\npytestmark = pytest.mark.slow\n" in text else None


def _may_be_slow(text: str) -> bool:
    return SIGNS.search(text) is not None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Leave modules and tests out of garbage collection: a look through their 800,000 objects takes half a second.

    At Python's default pace, looking through the others takes a twentieth of the time. The pace is the program's.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        _freeze_modules()
        collect_seldom()
        gc.enable()


MANY_MODULES = 100
"""modules imported by tests after which they are left out of garbage collection, too; each run begins one at its end"""
_modules_frozen = 0


def _freeze_modules() -> None:
    global _modules_frozen
    gc.freeze()
    _modules_frozen = len(sys.modules)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End a test process in order.

    DuckDB's binding has to find its objects freed at the very end, or it reports them in a hundred lines. Until then,
    pytest looks through all that is not frozen several times.
    """
    atexit.register(gc.unfreeze)
    if hasattr(config, "workerinput"):
        # One that takes more than five seconds to end is interrupted, wherever it is.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


TOGETHER = 200
"""maximum tests of a module that one process runs to make what they share only once; more take longer than making it"""


# Before pytest-xdist reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run all tests of a server in one test process, so that it starts once, and keep them out of the fast tier.

    Tests of a module that share a service or a corpus run in one process, too: of the slow tier, each test would be
    given to any process, which makes what it needs again.
    """
    _leave_for_other_days(config, items)
    sharing = Counter(_module_of(item) for item in items if _shares(item))
    for item in items:
        server = _server_of(item)
        if server is not None:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.xdist_group(server))
        elif _shares(item) and sharing[_module_of(item)] <= TOGETHER and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(_module_of(item)))
    for path in {item.path for item in items if item.get_closest_marker("slow")}:
        if not _may_be_slow(path.read_text("utf-8")):
            raise pytest.UsageError(
                f"{path} has slow tests and has to name pytest.mark.slow: the slow tier leaves it out"
            )
    if config.option.markexpr == "slow":
        # Whatever takes long and begins last keeps one process busy when the others have ended.
        items.sort(key=lambda item: (_seconds_at_most(item), _server_of(item) or ""), reverse=True)
    if os.environ[VARIABLE] == ALL:
        for item in items:
            # A whole series takes as long as it takes.
            item.add_marker(pytest.mark.timeout(0), append=False)


def _leave_for_other_days(config: pytest.Config, items: list[pytest.Item]) -> None:
    series: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("series"):
            series.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left: set[pytest.Item] = set()
    for cases in series.values():
        mark = cases[0].get_closest_marker("series")
        assert mark is not None
        left |= set(cases) - set(part_of(cases, *mark.args))
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell how to repeat a run of the slow tier."""
    if config.option.markexpr == "slow" and os.environ[VARIABLE] != ALL:
        again = f"{VARIABLE}={os.environ[VARIABLE]}"
        terminalreporter.write_line(f"Long series: {again} tries this part once more, {VARIABLE}={ALL} everything.")


def _seconds_at_most(item: pytest.Item) -> float:
    """Return how long a test, or the tests that run in one process with it, may take."""
    mark = item.get_closest_marker("timeout")
    if mark is not None:
        return float(mark.args[0])
    group = item.get_closest_marker("xdist_group")
    return 0 if group is None else 600 if group.args[0] in SERVERS else 300


def _module_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _shares(item: pytest.Item) -> bool:
    """Return True if a test uses what is made once for its module."""
    made = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
    return any(each[-1].scope == "module" for each in made)


def _server_of(item: pytest.Item) -> str | None:
    fixtures = getattr(item, "fixturenames", ())
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    store = parameters.get("shelf")
    if isinstance(store, str) and store in SERVERS_OF_SHELVES:
        return SERVERS_OF_SHELVES[store]
    return next((server for server in SERVERS if server in fixtures), None)


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the programs of this test an empty temporary folder, with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="pq-", dir="/tmp") as short:
        monkeypatch.setenv("TMPDIR", short)
        yield Path(short)


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """Create an empty source folder with settings for a corpus beside it."""
    return Workshop(tmp_path)


@pytest.fixture(autouse=True)
def _nothing_known_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process remembers each service by its address; a test's server may get the port of a different earlier one."""
    for ways in (reply_forms.FORMS, reply_forms.CAPS, reply_forms.OFFICIAL_CAPS):
        monkeypatch.setattr(ways, "_known", {})
    rate_limit_of.cache_clear()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A real S3 server; every test creates its own bucket."""
    with seaweed() as server:
        yield server


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """A running emulator of Azure Blob Storage, shared by all tests; each creates its own container."""
    with Azurite() as server:
        yield server


@pytest.fixture(scope="session")
def google_storage() -> Iterator[GoogleStorage]:
    """A running emulator of Google Cloud Storage, shared by all tests; each creates its own bucket."""
    with GoogleStorage() as server:
        yield server


@pytest.fixture(scope="session")
def prefect_api() -> Iterator[str]:
    """Run a Prefect server with an empty database; flows that run in this process use it."""
    # Tests must not use a real Prefect server or its settings.
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        del os.environ[name]
    os.environ |= {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false", **NO_SERVER}
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    # Prefect's threads keep DuckDB objects alive to the very end, which its binding then reports in a hundred lines.
    atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))
    home = tempfile.mkdtemp()
    fill_home(Path(home), "prefect-test.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prefect.testing.utilities.mkdtemp", lambda: home)
        with prefect_test_harness(server_startup_timeout=120):
            url = PREFECT_API_URL.value()
            assert url
            yield url
