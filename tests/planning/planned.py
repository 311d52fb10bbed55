"""Plans of one source, for tests."""

from parquetry.model import Listing
from parquetry.planning.diff import plan_source
from parquetry.settings.sections import RefreshSettings
from tests.records import content_hash, fingerprints


class Disk:
    """A content hash function for the planner: content by path, and a record of the paths read."""

    def __init__(self, **contents):
        self.contents = contents
        self.read = []

    def __call__(self, path):
        self.read.append(path)
        return content_hash(self.contents[path]) if path in self.contents else None


def forbidden(path):
    raise AssertionError(f"{path} was read")


def plan(items, rows, hash_of=forbidden, *, prefix="", unlisted=(), prints=None, limits=None, **options):
    listing = Listing("docs", "default", prefix, tuple(items), tuple(unlisted))
    return plan_source(listing, rows, prints or fingerprints(), hash_of, limits or RefreshSettings(), **options)


def only(planned):
    (change,) = planned.changes
    return change


def verdict(change):
    return change.action, change.effort, change.reason


def disk(**contents):
    return Disk(**{path.replace("__", "."): content for path, content in contents.items()})
